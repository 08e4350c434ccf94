import { capacityOf } from './bucket.ts'
import { CLOCK, listOf, numberOf, type ServerAlgorithm, timeIn, verdictBy } from './server-algorithm.ts'

/**
 * Token buckets that must warm up, as core's `WARM_UP_STEP` describes them. `s` holds four numbers: milliseconds owed, when they were,
 * how warm the key was, and until when it lives.
 */
export const WARM_UP: ServerAlgorithm = {
  common: `${CLOCK}
local function state(k, a)
  local now = clock(a + 6)
  local v = redis.call('HGET', KEYS[k], 's')
  if not v then return 0, 0, now, 0 end
  local owed, at, warmth, lives = struct.unpack('<dddd', v)
  local elapsed = math.max(0, now - at)
  return math.max(0, owed - elapsed), math.max(0, warmth - math.max(0, elapsed - owed) / ARGV[a + 4]), now, lives
end
local function fill(a, owed, warmth, units)
  local limit, interval, duration, cold = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
  local threshold = 0.5 * duration * limit / interval
  local most = threshold * (1 + 4 / (1 + cold))
  local slope = (cold * cold - 1) / (4 * threshold)
  local before = (1 - warmth) * most
  local high = units > 0 and before or math.min(most, before - units)
  local above = high - threshold
  local slow = math.max(0, math.min(units > 0 and units or high - before, above))
  local more = slow * slope * (2 * above - slow) / 2
  local time = units > 0 and units + more or units - more
  owed = math.max(0, math.min(9007199254740991, owed + time * interval / limit))
  return owed, math.min(1, math.max(0, warmth + units / most))
end
local function write(k, a, owed, warmth, now, lives)
  local needs = owed + warmth * ARGV[a + 4]
  local extend = now + needs > lives
  if extend then lives = now + 2 * needs + 1000 end
  mark(k, redis.call('HSET', KEYS[k], 's', struct.pack('<dddd', owed, now, warmth, lives), ARGV[1], ARGV[2]))
  if extend then redis.call('PEXPIRE', KEYS[k], string.format('%.0f', math.min(2 * needs + 1000, 5e12))) end
end`,
  take: `
local function look(k, a)
  local limit, capacity, cost = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 3]), tonumber(ARGV[a])
  local owed, warmth, now, lives = state(k, a)
  if limit == math.huge then return true, { 1, '0', '0' }, nil end
  local room = capacity - owed * limit / ARGV[a + 2]
  if cost <= room + capacity * 1e-10 and limit > 0 then
    local after, warm = owed, warmth
    if cost > 0 then after, warm = fill(a, owed, warmth, cost) end
    return true, { 1, string.format('%.17g', after), string.format('%.17g', warm) }, { after, warm }, now, lives
  end
  return false, { 0, string.format('%.17g', owed), string.format('%.17g', warmth) }
end
local function keep(k, a, after, now, lives)
  if after then write(k, a, after[1], after[2], now, lives) end
end`,
  add: `
local function add(k, a)
  local limit = tonumber(ARGV[a + 1])
  if limit == math.huge or limit == 0 then return end
  local owed, warmth, now, lives = state(k, a)
  owed, warmth = fill(a, owed, warmth, tonumber(ARGV[a]))
  write(k, a, owed, warmth, now, lives)
end`,
  back: `
local function back(k, a)
  local limit = tonumber(ARGV[a + 1])
  if limit == math.huge or limit == 0 then return end
  local owed, warmth, now, lives = state(k, a)
  if now - ARGV[a + 7] >= ARGV[a + 3] * ARGV[a + 2] / limit then return end
  owed, warmth = fill(a, owed, warmth, -ARGV[a])
  write(k, a, owed, warmth, now, lives)
end`,
  args(question, request) {
    const [interval = 0, , duration = 0, coldFactor = 0] = question.policy.parameters
    const capacity = capacityOf(question)
    const size = capacity === Number.POSITIVE_INFINITY ? 'inf' : String(capacity)
    const more = question.kind === 'give-back' ? [String(question.at)] : []
    return [String(interval), size, String(duration), String(coldFactor), timeIn(request), ...more]
  },
  read(reply, question, time) {
    const [allowed, owed, warmth] = listOf(reply).map(numberOf) as [number, number, number]
    return verdictBy(question, allowed === 1, [owed, time, warmth], time)
  },
}
