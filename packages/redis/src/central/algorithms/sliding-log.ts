import type { Verdict } from '@weir/core/sync'
import { CLOCK, listOf, numberOf, type ServerAlgorithm, timeIn } from './server-algorithm.ts'

/** Times that a key keeps whatever its limit is: for costs of less than one unit. */
const FEW_TIMES = 64
/** As the log's step has it: sums of fractions are rounded. Part of the limit. */
const ROUNDING = 1e-10

/**
 * The time of each request, until it leaves: a sorted set of `sequence:node:units` by time, and a hash with `u`, the sum of units; `l`, the
 * last time; and `e`, until when both live. What has left is taken out first.
 */
export const SLIDING_LOG: ServerAlgorithm = {
  common: `${CLOCK}
local function unitsOf(member)
  return tonumber(string.match(member, '[^:]*$'))
end
local function state(k, a)
  local interval, now = tonumber(ARGV[a + 2]), clock(a + 4)
  local v = redis.call('HMGET', KEYS[k], 'u', 'l', 'e')
  if not v[1] then return 0, now, 0, interval end
  local sum, last = tonumber(v[1]), tonumber(v[2])
  if last > now then
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[k + 1], '(' .. ARGV[a + 4], '+inf')) do
      redis.call('ZADD', KEYS[k + 1], now, member)
    end
  end
  local over = string.format('%.17g', now - interval)
  local gone = redis.call('ZRANGEBYSCORE', KEYS[k + 1], '-inf', over)
  if #gone > 0 then
    for _, member in ipairs(gone) do sum = sum - unitsOf(member) end
    redis.call('ZREMRANGEBYSCORE', KEYS[k + 1], '-inf', over)
    if sum < 0 or redis.call('ZCARD', KEYS[k + 1]) == 0 then sum = 0 end
    redis.call('HSET', KEYS[k], 'u', sum)
  end
  return sum, now, tonumber(v[3]), interval
end
local function write(k, a, sum, now, lives, interval, units, merge)
  local member = ARGV[2] .. ':' .. ARGV[1] .. ':'
  if merge and redis.call('ZCARD', KEYS[k + 1]) >= tonumber(ARGV[a + 3]) then
    local newest = redis.call('ZREVRANGE', KEYS[k + 1], 0, 0)[1]
    units = unitsOf(newest) + units
    redis.call('ZREM', KEYS[k + 1], newest)
  end
  redis.call('ZADD', KEYS[k + 1], now, member .. string.format('%.17g', units))
  if now + interval > lives then
    lives = now + 2 * interval + 1000
    mark(k, redis.call('HSET', KEYS[k], 'u', sum, 'l', now, 'e', lives, ARGV[1], ARGV[2]))
    redis.call('PEXPIRE', KEYS[k], string.format('%.0f', 2 * interval + 1000))
    redis.call('PEXPIRE', KEYS[k + 1], string.format('%.0f', 2 * interval + 1000))
  else
    mark(k, redis.call('HSET', KEYS[k], 'u', sum, 'l', now, ARGV[1], ARGV[2]))
  end
end`,
  take: `
local function look(k, a)
  local sum, now, lives, interval = state(k, a)
  local cost, limit = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  if cost <= limit - sum + limit * ${ROUNDING} and limit > 0 then
    if cost > 0 or sum == 0 then return true, { 1, num(sum + cost) }, sum + cost, now, lives end
    local newest = redis.call('ZREVRANGE', KEYS[k + 1], 0, 0, 'WITHSCORES')
    return true, { 1, num(sum), string.format('%.17g', newest[2] + interval - now) }
  end
  local excess, units, from, wait = sum + cost - limit - limit * ${ROUNDING} / 2, 0, 0, -1
  while wait < 0 do
    local page = redis.call('ZRANGE', KEYS[k + 1], from, from + 63, 'WITHSCORES')
    if #page == 0 then break end
    for i = 1, #page, 2 do
      units = units + unitsOf(page[i])
      if units >= excess then
        wait = page[i + 1] + interval - now
        break
      end
    end
    from = from + 64
  end
  local newest = redis.call('ZREVRANGE', KEYS[k + 1], 0, 0, 'WITHSCORES')
  return false, { 0, num(sum), string.format('%.17g', newest[2] and newest[2] + interval - now or 0), string.format('%.17g', wait) }
end
local function keep(k, a, sum, now, lives)
  local cost = tonumber(ARGV[a])
  write(k, a, sum, now, lives, tonumber(ARGV[a + 2]), cost, cost < 1)
end`,
  add: `
local function add(k, a)
  local sum, now, lives, interval = state(k, a)
  write(k, a, sum + ARGV[a], now, lives, interval, tonumber(ARGV[a]), true)
end`,
  back: `
local function back(k, a)
  local sum, now, lives, interval = state(k, a)
  local left = tonumber(ARGV[a])
  if now - ARGV[a + 5] >= interval then return end
  local found = redis.call('ZRANGEBYSCORE', KEYS[k + 1], ARGV[a + 5], '+inf', 'WITHSCORES')
  for i = 1, #found, 2 do
    if left <= 0 then break end
    local units = unitsOf(found[i])
    local less = math.min(left, units)
    left, sum = left - less, sum - less
    redis.call('ZREM', KEYS[k + 1], found[i])
    if units > less then
      local name = string.match(found[i], '^(.*:)[^:]*$')
      redis.call('ZADD', KEYS[k + 1], found[i + 1], name .. string.format('%.17g', units - less))
    end
  end
  if redis.call('ZCARD', KEYS[k + 1]) == 0 then sum = 0 end
  redis.call('HSET', KEYS[k], 'u', sum, ARGV[1], ARGV[2])
end`,
  suffixes: () => ['', ':z'],
  args(question, request) {
    const { limit, policy, kind, at } = question
    const most = limit === Number.POSITIVE_INFINITY ? FEW_TIMES : Math.max(FEW_TIMES, Math.ceil(limit))
    return [String(policy.parameters[0]), String(most), timeIn(request), ...(kind === 'give-back' ? [String(at)] : [])]
  },
  read(reply, { units, limit, policy }): Verdict {
    const [allowed, sum = 0, after, wait = 0] = listOf(reply).map(numberOf)
    const remaining = Math.max(0, limit - sum)
    if (allowed === 1) {
      const resetAfter = after ?? (units > 0 ? (policy.parameters[0] as number) : 0)
      return { allowed: true, remaining, resetAfter: Math.max(0, resetAfter), retryAfter: 0, delay: 0 }
    }
    // All units together are not enough.
    const retryAfter = wait < 0 ? Number.POSITIVE_INFINITY : Math.max(Number.MIN_VALUE, wait)
    return { allowed: false, remaining, resetAfter: Math.max(0, after ?? 0), retryAfter, delay: 0 }
  },
}
