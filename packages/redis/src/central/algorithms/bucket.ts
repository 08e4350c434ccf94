import type { Question } from '@weir/core/sync'
import { CLOCK, numberOf, type ServerAlgorithm, timeIn, verdictBy } from './server-algorithm.ts'

/** As the steps of buckets have it: quotients are rounded, and a request that comes when it was told to must fit. */
const ROUNDING = 1e-10

/** Units that a bucket holds: `-1` stands for the limit. */
export function capacityOf({ policy: { parameters }, limit }: Question): number {
  const [, size = -1] = parameters
  return size === -1 || limit === 0 || limit === Number.POSITIVE_INFINITY ? limit : size
}

/**
 * Buckets that requests fill, and that lose the limit in each interval. `s` holds three numbers: units in the bucket, when they were, and
 * until when the key lives.
 */
export const BUCKET: ServerAlgorithm = {
  common: `${CLOCK}
local function state(k, a)
  local limit, interval, now = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), clock(a + 4)
  local v = redis.call('HGET', KEYS[k], 's')
  if not v then return 0, now, 0, limit, interval end
  local level, at, lives = struct.unpack('<ddd', v)
  if limit == math.huge then level = 0
  elseif now > at then
    level = level - (now - at) * limit / interval
    if level < 0 then level = 0 end
  end
  return level, now, lives, limit, interval
end
local function write(k, level, now, lives, limit, interval)
  local needs = limit > 0 and level * interval / limit or interval
  local extend = now + needs > lives
  if extend then lives = now + 2 * needs + 1000 end
  mark(k, redis.call('HSET', KEYS[k], 's', struct.pack('<ddd', level, now, lives), ARGV[1], ARGV[2]))
  if extend then redis.call('PEXPIRE', KEYS[k], string.format('%.0f', math.min(2 * needs + 1000, 5e12))) end
end`,
  take: `
local function look(k, a)
  local level, now, lives, limit, interval = state(k, a)
  local cost, capacity = tonumber(ARGV[a]), tonumber(ARGV[a + 3])
  if cost <= capacity - level + capacity * ${ROUNDING} and limit > 0 then
    return true, num(level + cost), level + cost, now, lives
  end
  return false, num(-1 - level)
end
local function keep(k, a, level, now, lives)
  write(k, level, now, lives, tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]))
end`,
  add: `
local function add(k, a)
  local level, now, lives, limit, interval = state(k, a)
  write(k, math.min(level + ARGV[a], 9007199254740991), now, lives, limit, interval)
end`,
  // What came in then has run out when a whole bucket would have.
  back: `
local function back(k, a)
  local level, now, lives, limit, interval = state(k, a)
  local whole = limit > 0 and tonumber(ARGV[a + 3]) * interval / limit or 0
  if not (now - ARGV[a + 5] >= whole) then write(k, math.max(0, level - ARGV[a]), now, lives, limit, interval) end
end`,
  args(question, request) {
    const capacity = capacityOf(question)
    const size = capacity === Number.POSITIVE_INFINITY ? 'inf' : String(capacity)
    const more = question.kind === 'give-back' ? [String(question.at)] : []
    return [String(question.policy.parameters[0]), size, timeIn(request), ...more]
  },
  read(reply, question, time) {
    const told = numberOf(reply)
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, time], time)
  },
}
