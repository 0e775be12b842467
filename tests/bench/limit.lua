-- One shared limit as nginx asks for it: one EVALSHA of the edge's own script a request, on a connection that is kept. A refusal is 429;
-- a store that fails is 500. The benchmark ends at either.
local redis = require "nginx.redis"

local path, sha1, limit, burst, period_ms, prefix

local _M = {}

-- Once, before the worker starts. socket: "unix:/path". script: what SCRIPT LOAD answered. rule: its id.
function _M.setup(socket, script, rule, ...)
    path, sha1, limit, burst, period_ms = socket, script, ...
    prefix = "rl:tb:" .. period_ms .. ":" .. rule .. ":{"
end

local function fail(what, why)
    ngx.log(ngx.ERR, what, ": ", why)
    return ngx.exit(500)
end

function _M.check()
    local store = redis:new()
    store:set_timeout(200)
    local connected, why = store:connect(path)
    if not connected then
        return fail("connect", why)
    end
    local reply, failed = store:evalsha(sha1, 1, prefix .. ngx.var.remote_addr .. "}", "tb", limit, burst, period_ms)
    if not reply then
        return fail("evalsha", failed)
    end
    store:set_keepalive(60000, 64)
    local verdict, retry_after_ms = string.match(reply, "^%d+ (%d) %d+ (%d+)")
    if verdict == "0" then
        ngx.header["Retry-After"] = math.ceil(retry_after_ms / 1000)
        return ngx.exit(429)
    elseif verdict ~= "1" then
        return fail("reply", reply)
    end
end

return _M
