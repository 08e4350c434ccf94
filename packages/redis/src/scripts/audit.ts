/** Bytes of an entry. An entry has at most 1,000 UTF-16 units. */
const LONGEST = 3_000

/**
 * The log of manual actions, a sorted set by the server's time in microseconds. Uses only commands of the other scripts, so that no further
 * permission is needed.
 *
 * KEYS[1]: the set. ARGV[1], JSON: entry (nothing to add none), most (entries that stay), life (milliseconds), list (entries to return).
 * Reply: entries, the newest one first.
 */
export const AUDIT: string = [
  `
local request = cjson.decode(ARGV[1])
local LOG = KEYS[1]
if redis.replicate_commands then redis.replicate_commands() end
local clock = redis.call('TIME')
local size = redis.pcall('ZCARD', LOG)`,
  // Another program wrote a value of another type.
  `if type(size) ~= 'number' then
  redis.call('DEL', LOG)
  size = 0
end
size = size - redis.call('ZREMRANGEBYSCORE', LOG, '-inf', clock[1] * 1000000 - request.life * 1000)
if request.entry then
  redis.call('ZADD', LOG, clock[1] .. string.format('%06d', clock[2]), request.entry)
  redis.call('PEXPIRE', LOG, request.life)
  local excess = size + 1 - request.most`,
  // A hundred at a time, because another program may have added a million.
  `  if excess > 0 then redis.call('ZREM', LOG, unpack(redis.call('ZRANGE', LOG, 0, math.min(excess, 100) - 1))) end
end
local entries = {}
if request.list > 0 then
  for _, entry in ipairs(redis.call('ZREVRANGE', LOG, 0, request.list - 1)) do
    if #entry <= ${LONGEST} then entries[#entries + 1] = entry end
  end
end
return entries
`,
].join('\n')
