-- Header operations on HAProxy versions without add-headers-bin and del-headers-bin: reads the same bytes and does the same.
--   txn.edge.req_del  (varint length, name)... 0
--   txn.edge.req_add  (varint length, name)(varint length, value)... 0 0
-- Both lists are read and checked whole before the first operation, so a broken one changes nothing. Only when every operation
-- was called does txn.ops_applied become true; haproxy.cfg refuses the request without it, also after an error raised in here.
-- HAProxy does not tell when an added header finds no room: the agent refuses requests that leave none (spoa/request/headers.c).

local LENGTH_BYTES_MAX = 4
local TOKEN = "^[!#$%%&'*+%-.^_`|~%w]+$"
local BAD_VALUE = "[\0-\8\10-\31\127]"

-- The varint at position `at` and the position behind it; nil when it is cut or longer than any list needs.
local function varint(bytes, at)
    local value = bytes:byte(at)
    if value == nil or value < 240 then
        return value, at + 1
    end
    local shift = 4
    for i = 1, LENGTH_BYTES_MAX - 1 do
        local byte = bytes:byte(at + i)
        if byte == nil then
            return nil
        end
        value = value + (byte << shift)
        shift = shift + 7
        if byte < 128 then
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
    return bytes:sub(start, start + length - 1), start + length
end

-- The names of a deletion list; an absent list has none; nil when it is malformed.
local function deletions(bytes)
    local names, at = {}, 1
    while bytes ~= nil do
        local name
        name, at = counted(bytes, at)
        if name == "" and at == #bytes + 1 then
            return names
        elseif name == nil or not name:find(TOKEN) then
            return nil
        end
        names[#names + 1] = name
    end
    return names
end

-- The headers of an addition list as {name, value}; an absent list has none; nil when it is malformed.
local function additions(bytes)
    local headers, at = {}, 1
    while bytes ~= nil do
        local name, value
        name, at = counted(bytes, at)
        if name ~= nil then
            value, at = counted(bytes, at)
        end
        if name == "" and value == "" and at == #bytes + 1 then
            return headers
        elseif value == nil or not name:find(TOKEN) or value:find(BAD_VALUE) then
            return nil
        end
        headers[#headers + 1] = {name, value}
    end
    return headers
end

core.register_action("edge_headers", {"http-req"}, function(txn)
    local names = deletions(txn:get_var("txn.edge.req_del"))
    local headers = additions(txn:get_var("txn.edge.req_add"))
    if names == nil or headers == nil then
        return
    end
    for _, name in ipairs(names) do
        txn.http:req_del_header(name)
    end
    for _, header in ipairs(headers) do
        txn.http:req_add_header(header[1], header[2])
    end
    txn:set_var("txn.ops_applied", true)
end)
