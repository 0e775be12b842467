-- What haproxy.cfg can't say: pages of HAProxy's own answers on every version, and header operations on versions without
-- add-headers-bin and del-headers-bin, from the same bytes:
--   txn.edge.req_del, res_del  (varint length, name)... 0
--   txn.edge.req_add, res_add  (varint length, name)(varint length, value)... 0 0
-- Both lists of a message are read and checked whole before the first operation, so a broken one changes nothing. Only when every
-- operation on the request was called does txn.pending go away; haproxy.cfg forwards nothing while it is there, also after an error
-- raised in here. A response whose lists are broken becomes HAProxy's 500, as it does where HAProxy reads them itself.
-- HAProxy does not tell when an added header finds no room: the agent refuses requests that leave none (spoa/request/headers.c).
--
-- HAProxy counts every instruction of Lua's machine, which makes them dear and calls into C cheap: hence string.unpack, and the
-- lists that are remembered, since most requests that match the same rules get the same lists.

local byte, find, gsub, sub, unpack = string.byte, string.find, string.gsub, string.sub, string.unpack

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

-- A function that reads lists with `parse` and remembers them: an absent list is empty; false for one that is malformed.
local function remembering(parse)
    local lists, n = {}, 0
    return function(bytes)
        if bytes == nil then
            return NOTHING
        end
        local list = lists[bytes]
        if list == nil then
            local good, found = pcall(parse, bytes)
            list = good and found or false
            if #bytes <= REMEMBERED_BYTES_MAX then
                if n == REMEMBERED_MAX then
                    lists, n = {}, 0
                end
                lists[bytes], n = list, n + 1
            end
        end
        return list
    end
end

local deleted, added = remembering(deletions), remembering(additions)

local function apply(http, delete, names, add, headers)
    for i = 1, #names do
        delete(http, names[i])
    end
    for i = 1, #headers, 2 do
        add(http, headers[i], headers[i + 1])
    end
end

core.register_action("edge_request_headers", {"http-req"}, function(txn)
    local names, headers = deleted(txn:get_var("txn.edge.req_del")), added(txn:get_var("txn.edge.req_add"))
    if not (names and headers) then
        return
    end
    local http = txn.http
    apply(http, http.req_del_header, names, http.req_add_header, headers)
    txn:unset_var("txn.pending")
end)

core.register_action("edge_response_headers", {"http-after-res"}, function(txn)
    local names, headers = deleted(txn:get_var("txn.edge.res_del")), added(txn:get_var("txn.edge.res_add"))
    if not (names and headers) then
        return act.ERROR
    end
    local http = txn.http
    apply(http, http.res_del_header, names, http.res_add_header, headers)
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
-- What it was that HAProxy answers with a 503, by the state that it ended the request in.
local UNREACHABLE = {sC = "gateway_timeout", SC = "bad_gateway"}

-- The variable that holds a page or its content type: the request's own, else the policy's default; nil without one.
local function page_var(txn, name)
    local value = txn:get_var("txn.edge." .. name) or txn:get_var("proc.edge." .. name)
    return value ~= "" and value or nil
end

-- The body of HAProxy's own answer to what happened: a kind of schemas/kinds.def, or "unreachable". txn.ctype becomes the content
-- type of a page.
core.register_fetches("edge_page", function(txn, what)
    local kind = what
    if what == "unreachable" then
        kind = UNREACHABLE[txn.f:txn_sess_term_state()] or "unavailable"
    end
    local page = page_var(txn, "t_" .. kind)
    if page == nil then
        return PLAIN[what]
    end
    txn:set_var("txn.ctype", page_var(txn, "ct_" .. kind))
    return (gsub(page, "{{request_id}}", txn.f:unique_id()))
end)
