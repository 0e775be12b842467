-- Rate limits of one request: every key is judged and charged on the store's own clock, in one call.
--
-- KEYS: the counters. ARGV, four for each key: algorithm, limit, burst, period in ms.
-- Reply: "<now ms>" and for each key " <verdict> <remaining> <retry after ms> <reset ms>", verdict 1 allowed, 0 refused, 2 no counter of ours.
--
-- The sums are those of rate_step in step.c to the last digit: all of them stay below 2^53, where doubles hold every whole number, and ceil of a
-- quotient is exact because numerator (at most 2^51) and denominator are whole. Numbers are written with %d: Lua's own conversion keeps 14 digits.
-- One text that is joined as it grows was measured against a table of parts and against integer replies: it costs the least.

local call, format, ceil = redis.call, string.format, math.ceil
local pack, unpack = struct.pack, struct.unpack

local time = call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000

-- One function for each algorithm: the key, what is stored there (false: nothing) and its numbers -> the key's part of the reply.
local algorithms = {}

-- Stored until the bucket is full again: tokens x period and the time of the last update, in 13 bytes, which with a key of 50 characters make
-- 123 bytes of Valkey's memory where decimals make 139, and cost less to read and write. Anything else that stands there counts as nothing.
local TB_STATE, TB_STATE_LEN, TB_CONTENT_MAX = '>I7I6', 13, 2251799813685248 -- 2^51

function algorithms.tb(key, stored, limit, burst, period)
    local capacity = burst * period
    local content, at = capacity, now
    if stored and #stored == TB_STATE_LEN then
        local a, b = unpack(TB_STATE, stored)
        if a <= TB_CONTENT_MAX then
            if b < now then
                a = a + (now - b) * limit
            else
                at = b
            end
            if a < capacity then
                content = a
            end
        end
    end

    local behind = at - now
    if content < period then
        return format(' 0 0 %d %d', behind + ceil((period - content) / limit), behind + ceil((capacity - content) / limit))
    end
    content = content - period
    local reset = behind + ceil((capacity - content) / limit)
    call('SET', key, pack(TB_STATE, content, at), 'PX', reset)
    return format(' 1 %d 0 %d', content / period, reset)
end

local reply = format('%d', now)
for i, key in ipairs(KEYS) do
    local stored = redis.pcall('GET', key)
    if type(stored) ~= 'table' then
        local last = i * 4
        reply = reply .. algorithms[ARGV[last - 3]](key, stored, ARGV[last - 2] + 0, ARGV[last - 1] + 0, ARGV[last] + 0)
    elseif string.find(stored.err, '^WRONGTYPE') then
        reply = reply .. ' 2 0 0 0'
    else
        return stored
    end
end
return reply
