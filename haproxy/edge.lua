-- What haproxy.cfg can't say: bounds of a body that is still to come and pages of HAProxy's own answers and why the upstream gave none on every version, and header operations on versions without
-- add-headers-bin and del-headers-bin, from the same bytes:
--   txn.edge.req_del, res_del  (varint length, name)... 0
--   txn.edge.req_add, res_add  (varint length, name)(varint length, value)... 0 0
-- Both lists of a message are read and checked whole before the first operation, so a broken one changes nothing. Only when every
-- operation on the request was called does txn.pending go away; haproxy.cfg forwards nothing while it is there, also after an error
-- raised in here. A response whose lists are broken becomes HAProxy's 500, as it does where HAProxy reads them itself.
-- HAProxy does not tell when an added header finds no room: the agent refuses requests that leave none (spoa/request/headers.c).
--
-- HAProxy counts every instruction of Lua's machine, which makes them dear and calls into C cheap: hence string.unpack, and what is
-- remembered of lists, since most requests that match the same rules get the same ones.

local byte, find, gsub, lower, sub, unpack = string.byte, string.find, string.gsub, string.lower, string.sub, string.unpack

local LENGTH_BYTES_MAX = 4
local TOKEN = "^[!#$%%&'*+%-.^_`|~%w]+$"
local BAD_VALUE = "[\0-\8\10-\31\127]"
-- What is remembered: short lists, a limited number of them. Each thread has its own.
local REMEMBERED_BYTES_MAX, REMEMBERED_MAX = 1024, 256
local NOTHING = {}

-- The varint at position `at` and the position behind it; nil when it is cut or longer than any list needs.
local function varint(bytes, at)
    local value = byte(bytes, at)
    if value == nil or value < 240 then
        return value, at + 1
    end
    local shift = 4
    for i = 1, LENGTH_BYTES_MAX - 1 do
        local part = byte(bytes, at + i)
        if part == nil then
            return nil
        end
        value = value + (part << shift)
        shift = shift + 7
        if part < 128 then
            return value, at + i + 1
        end
    end
    return nil
end

-- The counted string at `at` and the position behind it; nil when it is cut.
local function counted(bytes, at)
    local length, start = varint(bytes, at)
    if length == nil or start + length - 1 > #bytes then
        return nil
    end
    return sub(bytes, start, start + length - 1), start + length
end

-- The same for lists without long strings, where a length is always one byte; raises an error when it is cut.
local function counted_short(bytes, at)
    return unpack("s1", bytes, at)
end

local function reader(bytes)
    return find(bytes, "[\240-\255]") and counted or counted_short
end

-- The names of a deletion list; nil when it is malformed.
local function deletions(bytes)
    local read, names, at = reader(bytes), {}, 1
    while true do
        local name
        name, at = read(bytes, at)
        if name == "" and at == #bytes + 1 then
            return names
        elseif name == nil or not find(name, TOKEN) then
            return nil
        end
        names[#names + 1] = name
    end
end

-- The headers of an addition list as name, value, name, value...; nil when it is malformed.
local function additions(bytes)
    local read, headers, at = reader(bytes), {}, 1
    while true do
        local name, value
        name, at = read(bytes, at)
        if name ~= nil then
            value, at = read(bytes, at)
        end
        if name == "" and value == "" and at == #bytes + 1 then
            return headers
        elseif value == nil or not find(name, TOKEN) or find(value, BAD_VALUE) then
            return nil
        end
        headers[#headers + 1] = name
        headers[#headers + 1] = value
    end
end

-- What to call for a message whose lists are del and add (nil: absent), given HAProxy's functions for it: `delete` with each of names;
-- then, three by three in calls, a function, a name and a value. A name that is deleted and then added is set instead, which is one call
-- for two; names are compared as HAProxy does. nil when a list is malformed.
local function plan(del, add, functions)
    local names, headers = del and deletions(del) or not del and NOTHING, add and additions(add) or not add and NOTHING
    if not (names and headers) then
        return nil
    end
    local first, set, made = {}, {}, {names = {}, calls = {}, delete = functions.delete}
    for i = #headers - 1, 1, -2 do
        first[lower(headers[i])] = i
    end
    for i = 1, #names do
        local at = first[lower(names[i])]
        if at then
            set[at] = true
        else
            made.names[#made.names + 1] = names[i]
        end
    end
    for i = 1, #headers, 2 do
        local calls = made.calls
        calls[#calls + 1] = set[i] and functions.set or functions.add
        calls[#calls + 1] = headers[i]
        calls[#calls + 1] = headers[i + 1]
    end
    return made
end

-- A function that does what both lists say and remembers the plan for them. False: one of them is malformed, nothing was done.
local function applying(prefix)
    local plans, n = {}, 0
    return function(http, del, add)
        local of_del = plans[del or false]
        local made = of_del and of_del[add or false]
        if made == nil then
            local functions = {delete = http[prefix .. "del_header"], set = http[prefix .. "set_header"], add = http[prefix .. "add_header"]}
            local good, found = pcall(plan, del, add, functions)
            made = good and found or false
            if #(del or "") <= REMEMBERED_BYTES_MAX and #(add or "") <= REMEMBERED_BYTES_MAX then
                if n == REMEMBERED_MAX then
                    plans, n = {}, 0
                end
                plans[del or false] = plans[del or false] or {}
                plans[del or false][add or false], n = made, n + 1
            end
        end
        if not made then
            return false
        end
        local names, calls, delete = made.names, made.calls, made.delete
        for i = 1, #names do
            delete(http, names[i])
        end
        for i = 1, #calls, 3 do
            calls[i](http, calls[i + 1], calls[i + 2])
        end
        return true
    end
end

local apply_request, apply_response = applying("req_"), applying("res_")

core.register_action("edge_request_headers", {"http-req"}, function(txn)
    if apply_request(txn.http, txn:get_var("txn.edge.req_del"), txn:get_var("txn.edge.req_add")) then
        txn:unset_var("txn.pending")
    end
end)

core.register_action("edge_response_headers", {"http-after-res"}, function(txn)
    if not apply_response(txn.http, txn:get_var("txn.edge.res_del"), txn:get_var("txn.edge.res_add")) then
        return act.ERROR
    end
end)

local function now_ms()
    local now = core.now()
    return now.sec * 1000 + now.usec // 1000
end

-- A body that is still to come has at most txn.edge.body_limit bytes, and comes within txn.edge.body_ms milliseconds from the request's
-- headers on. What it has is forwarded as it comes. HAProxy calls in here when something comes, so a silent client is left to its client
-- timer. filter.wake_time would be exact, but a wake-up that no callback takes away makes HAProxy spin until its watchdog kills it.
local Body = {id = "body", flags = filter.FLT_CFG_FL_HTX}
Body.__index = Body

local ENDED_STATUS = {body_limit = 413, body_timeout = 408}

function Body:new()
    return setmetatable({}, Body)
end

function Body:http_headers(txn, message)
    if message:is_resp() then
        self.answered = true
        -- HAProxy forwards a response behind its analysers' back, and then forgets to wake the stream for a request that is filtered: what
        -- both sides say in turn would stall. It does not where the response is filtered as well.
        if self.until_ms then
            filter.register_data_filter(self, message.channel)
        end
        return
    end
    self.left, self.until_ms = txn:get_var("txn.edge.body_limit"), txn:get_var("txn.edge.body_ms")
    if self.left and self.until_ms then
        self.until_ms = self.until_ms + now_ms()
        filter.register_data_filter(self, message.channel)
    end
end

function Body:http_payload(txn, message)
    if message:is_resp() then
        return
    end
    if self.ended then
        return 0
    end
    local n = message:input()
    if n == 0 then
        return
    end
    -- Trailers count in n, and so does their end, but they are no body: where it matters its bytes are counted themselves.
    if n > self.left then
        n = #(message:body() or "")
    end
    self.left = self.left - n
    local ended = self.left < 0 and "body_limit" or now_ms() >= self.until_ms and "body_timeout"
    if not ended then
        return
    end
    -- What stayed would count as forwarded: the request would be held open until a timer ends it, and its end be judged again.
    message:remove()
    self.ended = true
    txn:set_var("txn.decision", ended)
    if self.answered then
        -- The response breaks off: over HTTP/1 the connection closes, over HTTP/2 the stream is reset.
        txn:done()
    end
    txn:done(txn:reply{status = ENDED_STATUS[ended]})
end

core.register_filter("edge_body", Body, function(class)
    return class
end)

-- What HAProxy says by itself while no agent has sent a page for it.
local PLAIN = {
    overloaded = "overloaded\n",
    unavailable = "unavailable\n",
    payload_too_large = "payload too large\n",
    bad_gateway = "The upstream gave no valid answer.\n",
    gateway_timeout = "The upstream did not answer in time.\n",
    unreachable = "The upstream can not be reached.\n",
}
local IN_THE_UPSTREAMS_STEAD = {bad_gateway = true, gateway_timeout = true, unreachable = true}

-- HAProxy's codes of errors of TLS (`bc_err`). Those behind them have other numbers in each version.
local TLS_FIRST, TLS_LAST, TLS_NO_NAME, TLS_OTHER_NAME = 24, 43, 32, 33
-- OpenSSL's: the reason within a code (`ssl_bc_err`); alerts of the peer are from ALERTS on.
local REASON, CERTIFICATE_VERIFY_FAILED, ALERTS = 0x7fffff, 134, 1000

-- Why no TLS connection came about.
local function tls_cause(code, reason)
    if code == TLS_NO_NAME then
        return "tls.host"
    elseif code == TLS_OTHER_NAME then
        return "tls.name"
    elseif reason == CERTIFICATE_VERIFY_FAILED then
        return "tls.certificate"
    elseif reason >= ALERTS then
        return "tls.alert"
    end
    return reason == 0 and "tls.closed" or "tls"
end

-- Why the upstream gave no answer, in the words of schemas/upstream_causes.def.
local function cause_of(txn, what)
    local state = txn.f:txn_sess_term_state()
    local code, reason = txn.f:bc_err() or 0, (txn.f:ssl_bc_err() or 0) & REASON
    -- Nobody has acknowledged anything on a connection without a round-trip time: it never was one.
    local rtt = txn.f:bc_rtt("us")
    if state == "sC" then
        return rtt and rtt > 0 and "timeout.tls" or "timeout.connect"
    elseif state == "sH" then
        return "timeout.headers"
    elseif state == "PH" then
        return "other.invalid"
    elseif state ~= "SC" and state ~= "SH" then
        return what == "bad_gateway" and "other.switched" or "other"
    elseif state == "SC" and txn.f:nbsrv(txn.f:be_name()) == 0 then
        return "dns"
    -- HAProxy 3.2 calls a refused connection a failed handshake.
    elseif reason ~= 0 or code >= TLS_FIRST and code <= TLS_LAST and rtt ~= 0 then
        return tls_cause(code, reason)
    end
    local connected = rtt and rtt > 0
    -- A reset that HAProxy sees before it reads has no code of TLS; a connection over TLS is established (no longer SC) only after the handshake.
    if state == "SC" and connected and txn.f:ssl_bc() then
        return "tls.closed"
    end
    return (state == "SH" or connected) and "reset" or "refused"
end

local UNANSWERED = {timeout = "upstream_timeout", tls = "upstream_tls"}
-- What it was that HAProxy answers with a 503, by the state that it ended the request in.
local UNREACHABLE = {sC = "gateway_timeout", SC = "bad_gateway"}

-- HAProxy answers in the upstream's stead; returns the response's kind. What was the matter goes to the record, and to HAProxy's own line.
local function unanswered(txn, what)
    local cause = cause_of(txn, what)
    local kind = gsub(cause, "%..*", "")
    txn:set_var("txn.upstream_error", cause)
    txn:set_var("txn.decision", UNANSWERED[kind] or "upstream_error")
    txn:set_var("txn.unanswered", ',"edge.upstream_error":"' .. cause .. '","edge.upstream_error_kind":"' .. kind .. '"')
    return what == "unreachable" and (UNREACHABLE[txn.f:txn_sess_term_state()] or "unavailable") or what
end

-- The variable that holds a page or its content type: the request's own, else the policy's default; nil without one.
local function page_var(txn, name)
    local value = txn:get_var("txn.edge." .. name) or txn:get_var("proc.edge." .. name)
    return value ~= "" and value or nil
end

-- The body of HAProxy's own answer to what happened: a kind of schemas/kinds.def, or "unreachable". txn.ctype becomes the content
-- type of a page.
core.register_fetches("edge_page", function(txn, what)
    local kind = IN_THE_UPSTREAMS_STEAD[what] and unanswered(txn, what) or what
    local page = page_var(txn, "t_" .. kind)
    if page == nil then
        return PLAIN[what]
    end
    txn:set_var("txn.ctype", page_var(txn, "ct_" .. kind))
    return (gsub(page, "{{request_id}}", txn:get_var("txn.id")))
end)
