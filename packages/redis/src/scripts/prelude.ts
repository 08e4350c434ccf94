/** What both scripts begin with: the request, the time, and the node's sequence number in this bucket. */
export const PRELUDE: string = `
local request = cjson.decode(ARGV[1])
local call = redis.call
local clock = call('TIME')
local shown = clock[1] * 1000 + clock[2] / 1000
-- After a step of this server's clock the nodes go by another time for a while.
local now = request.now or shown
local LOG, ENDS, KEEP, HOT = KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- Kept, so that a node notices when a write of it that was acknowledged is missing. The first write of the script, so
-- that a server that is full, or a replica, refuses the whole of it and not a part.
local before = call('GET', KEYS[1])
local sequence = math.max(tonumber(before) or 0, request.sequence)
call('SET', KEYS[1], string.format('%.0f', sequence), 'PX', request.sequenceTtl)

-- In texts, Lua's own conversion keeps 14 digits only. Arguments of commands Redis converts exactly by itself.
local function number(value)
  if value % 1 == 0 and value < 1e14 and value > -1e14 then return value end
  return string.format('%.17g', value)
end

local function expireAtLeast(key, ttl)
  if call('PTTL', key) < ttl then call('PEXPIRE', key, math.ceil(ttl)) end
end

local function forgetBlocks()
  local over = call('ZRANGEBYSCORE', KEEP, '-inf', number(now), 'LIMIT', 0, 100)
  for _, member in ipairs(over) do
    call('ZREM', KEEP, member)
    call('ZREM', ENDS, member)
    call('ZREM', LOG, member)
  end
end

local HOUR = 3600000
`
