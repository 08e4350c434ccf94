import type { Verdict } from '@weir/core/sync'
import { added, listOf, noted, num, numberOf, type Place, type ServerAlgorithm, timeIn, unmarked } from './server-algorithm.ts'

/** Number of times that a key may contain even if its limit is smaller, because requests may cost less than one unit. */
const FEW_TIMES = 64
/** The same tolerance as in the log's step, because sums of fractions are rounded. A part of the limit. */
const ROUNDING = 1e-10
/** Times are whole microseconds, because sorted sets store and compare whole numbers in a fraction of the time. */
const MICROSECONDS = 1000

/** Sets `now`, the sum of units, the last time, the key's expiry, and a lower bound of all times. Trims the log. */
function state(place: Place): string {
  const { key, arg } = place
  const read = `before = redis.call('HGET', ${key()}, 's')`
  return `local interval, now = tonumber(${arg(0)}), tonumber(${arg(2)})
if now then now = math.floor(now * ${MICROSECONDS} + 0.5)
else
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local sum, last, lives, oldest = 0, now, 0, now
local ${read}
${unmarked(place, 'before', read)}
if before then
  sum, last, lives, oldest = struct.unpack('<dddd', before)
  if last > now then
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', ${key(1)}, '(' .. string.format('%.0f', now), '+inf')) do
      redis.call('ZADD', ${key(1)}, now, member)
    end
    last, oldest = now, math.min(oldest, now)
    redis.call('HSET', ${key()}, 's', struct.pack('<dddd', sum, last, lives, oldest) .. open)
  end
  if oldest <= now - interval then
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', ${key(1)}, '-inf', now - interval)) do
      sum = sum - string.match(member, '[^:]*$')
    end
    redis.call('ZREMRANGEBYSCORE', ${key(1)}, '-inf', now - interval)
    local first = redis.call('ZRANGE', ${key(1)}, 0, 0, 'WITHSCORES')
    if first[1] then sum, oldest = math.max(0, sum), tonumber(first[2]) else sum, oldest = 0, now end
    redis.call('HSET', ${key()}, 's', struct.pack('<dddd', sum, last, lives, oldest) .. open)
  end
end`
}

/** Writes the sum `after` and a time with `units`. With `merge`, if the log is long, the newest time gets the units. */
function write(place: Place, merge: string, undo = ''): string {
  const { key, arg, due } = place
  return `local merged
if ${merge} and redis.call('ZCARD', ${key(1)}) >= tonumber(${arg(1)}) then
  merged = redis.call('ZREVRANGE', ${key(1)}, 0, 0, 'WITHSCORES')
  units = units + string.match(merged[1], '[^:]*$')
  redis.call('ZREM', ${key(1)}, merged[1])
end
local member = ${due === undefined ? 'field' : "ARGV[2] .. ':' .. ARGV[1]"} .. ':' .. ${num('units')}
redis.call('ZADD', ${key(1)}, now, member)
if sum == 0 then oldest = now end
local extend = now + interval > lives
if extend then lives = math.max(now + 2 * interval + 1000000, latest * ${MICROSECONDS}) end
local added = redis.call('HSET', ${key()}, 's', struct.pack('<dddd', after, now, lives, oldest) .. open${noted(place)})
if extend then
  local life = string.format('%.0f', (lives - now) / ${MICROSECONDS})
  redis.call('PEXPIRE', ${key()}, life)
  redis.call('PEXPIRE', ${key(1)}, life)
end
if added > 0 then ${added(key(), undo)} end`
}

/**
 * The time of each request until it expires. A sorted set contains `sequence:node:units` by time, or `#id:units` for a reservation. A hash contains `s`, four numbers: the
 * sum of units, the last time, the expiry of both, and a lower bound of all times. Expired entries are removed first.
 */
export const SLIDING_LOG: ServerAlgorithm = {
  takes: 3,
  time: 2,
  field: 's',
  empty: "struct.pack('<dddd', 0, 0, 0, 0)",
  stamp: 'now',
  look: (place) => `${state(place)}
local after = sum + units
if units <= limit - sum + limit * ${ROUNDING} and limit > 0 then
  ok = true
  if units > 0 or sum == 0 then reply = ${num('after')}
  else
    local newest = redis.call('ZREVRANGE', ${place.key(1)}, 0, 0, 'WITHSCORES')
    reply = { 1, ${num('sum')}, (newest[2] or now - interval) + interval - now }
  end
else
  local excess, found, from, wait = after - limit - limit * ${ROUNDING} / 2, 0, 0, -1
  while wait < 0 do
    local page = redis.call('ZRANGE', ${place.key(1)}, from, from + 63, 'WITHSCORES')
    if #page == 0 then break end
    for i = 1, #page, 2 do
      found = found + string.match(page[i], '[^:]*$')
      if found >= excess then
        wait = page[i + 1] + interval - now
        break
      end
    end
    from = from + 64
  end
  local newest = redis.call('ZREVRANGE', ${place.key(1)}, 0, 0, 'WITHSCORES')
  reply = { 0, ${num('sum')}, newest[2] and newest[2] + interval - now or 0, wait }
end`,
  keep: (place) =>
    write(
      place,
      '(units < 1 or limit == math.huge)',
      `redis.call('ZREM', ${place.key(1)}, member)
if merged then redis.call('ZADD', ${place.key(1)}, merged[2], merged[1]) end
redis.call('HSET', ${place.key()}, 's', before .. open)`,
    ),
  add: (place) => `${state(place)}
local after = sum + units
${write(place, 'true')}`,
  back: (place, at) => `${state(place)}
if now - ${at} < interval then
  local left = units
  local found = redis.call('ZRANGEBYSCORE', ${place.key(1)}, ${at}, '+inf', 'WITHSCORES')
  for i = 1, #found, 2 do
    if left <= 0 then break end
    local name, has = string.match(found[i], '^(.*:)([^:]*)$')
    local less = math.min(left, has)
    left, sum = left - less, sum - less
    redis.call('ZREM', ${place.key(1)}, found[i])
    if tonumber(has) > less then redis.call('ZADD', ${place.key(1)}, found[i + 1], name .. string.format('%.17g', has - less)) end
  end
  if redis.call('ZCARD', ${place.key(1)}) == 0 then sum = 0 end
  redis.call('HSET', ${place.key()}, 's', struct.pack('<dddd', math.max(0, sum), last, lives, oldest) .. open${noted(place)})
end`,
  keys(_question, name, list) {
    list.push(name, `${name}:z`)
  },
  args(question, request, list) {
    const { limit, policy, kind, at } = question
    const most = limit === Number.POSITIVE_INFINITY ? FEW_TIMES : Math.max(FEW_TIMES, Math.ceil(limit))
    list.push(String(Math.round((policy.parameters[0] as number) * MICROSECONDS)), String(most), timeIn(request))
    if (kind === 'give-back') list.push(String(Math.floor(at * MICROSECONDS)))
  },
  read(reply, { units, limit, policy }): Verdict {
    if (!Array.isArray(reply)) {
      const remaining = Math.max(0, limit - numberOf(reply))
      return { allowed: true, remaining, resetAfterMs: units > 0 ? (policy.parameters[0] as number) : 0, retryAfterMs: 0, delayMs: 0 }
    }
    const [allowed, sum = 0, after = 0, wait = 0] = listOf(reply).map(numberOf)
    const remaining = Math.max(0, limit - sum)
    const resetAfterMs = Math.max(0, after / MICROSECONDS)
    if (allowed === 1) return { allowed: true, remaining, resetAfterMs, retryAfterMs: 0, delayMs: 0 }
    // All units together are not enough.
    const retryAfterMs = wait < 0 ? Number.POSITIVE_INFINITY : Math.max(Number.MIN_VALUE, wait / MICROSECONDS)
    return { allowed: false, remaining, resetAfterMs, retryAfterMs, delayMs: 0 }
  },
}
