import { capacityOf, numeral } from './bucket.ts'
import { added, clock, listOf, numberOf, type Place, type ServerAlgorithm, timeIn, verdictBy } from './server-algorithm.ts'

function state({ key, arg }: Place): string {
  return `${clock(arg(4))}
local owed, at, warmth, lives = 0, now, 0, 0
local before = redis.call('HGET', ${key()}, 's')
if before then
  owed, at, warmth, lives = struct.unpack('<dddd', before)
  local elapsed = math.max(0, now - at)
  warmth = math.max(0, warmth - math.max(0, elapsed - owed) / ${arg(2)})
  owed = math.max(0, owed - elapsed)
end`
}

/** Changes `owed` and `warmth` by so many units. */
function fill({ arg }: Place, units: string): string {
  return `local change, interval, duration, cold = ${units}, tonumber(${arg(0)}), tonumber(${arg(2)}), tonumber(${arg(3)})
local threshold = 0.5 * duration * limit / interval
local most = threshold * (1 + 4 / (1 + cold))
local slope = (cold * cold - 1) / (4 * threshold)
local here = (1 - warmth) * most
local high = change > 0 and here or math.min(most, here - change)
local above = high - threshold
local slow = math.max(0, math.min(change > 0 and change or high - here, above))
local more = slow * slope * (2 * above - slow) / 2
local time = change > 0 and change + more or change - more
owed = math.max(0, math.min(9007199254740991, owed + time * interval / limit))
warmth = math.min(1, math.max(0, warmth + change / most))`
}

function write({ key, arg }: Place, undo = ''): string {
  return `local needs = owed + warmth * ${arg(2)}
local extend = now + needs > lives
if extend then lives = now + 2 * needs + 1000 end
local added = redis.call('HSET', ${key()}, 's', struct.pack('<dddd', owed, now, warmth, lives), ARGV[1], ARGV[2])
if extend then redis.call('PEXPIRE', ${key()}, string.format('%.0f', math.min(2 * needs + 1000, 5e12))) end
if added > 0 then ${added(key(), undo)} end`
}

/**
 * Token buckets that must warm up, as core's `WARM_UP_STEP` describes them. `s` holds four numbers: milliseconds owed, when they were,
 * how warm the key was, and until when it lives.
 */
export const WARM_UP: ServerAlgorithm = {
  takes: 5,
  look: (place) => `${state(place)}
if limit == math.huge then ok, reply = true, { 1, '0', '0' }
else
  local capacity = tonumber(${place.arg(1)})
  if limit > 0 and units <= capacity - owed * limit / ${place.arg(0)} + capacity * 1e-10 then
    ok = true
    if units > 0 then
      ${fill(place, 'units')}
    end
  elseif at > now then redis.call('HSET', ${place.key()}, 's', struct.pack('<dddd', owed, now, warmth, lives)) end
  reply = { ok and 1 or 0, string.format('%.17g', owed), string.format('%.17g', warmth) }
end`,
  keep: (place) => `if limit ~= math.huge then
  ${write(place, `redis.call('HSET', ${place.key()}, 's', before)`)}
end`,
  add: (place) => `if limit ~= math.huge and limit > 0 then
  ${state(place)}
  ${fill(place, 'units')}
  ${write(place)}
end`,
  back: (place) => `if limit ~= math.huge and limit > 0 then
  ${state(place)}
  if now - ${place.arg(5)} < ${place.arg(1)} * ${place.arg(0)} / limit then
    ${fill(place, '-units')}
    ${write(place)}
  end
end`,
  args(question, request, list) {
    const [interval = 0, , duration = 0, coldFactor = 0] = question.policy.parameters
    list.push(String(interval), numeral(capacityOf(question, question.limit)), String(duration), String(coldFactor), timeIn(request))
    if (question.kind === 'give-back') list.push(String(question.at))
  },
  read(reply, question, time) {
    const [allowed, owed, warmth] = listOf(reply).map(numberOf) as [number, number, number]
    return verdictBy(question, allowed === 1, [owed, time, warmth], time)
  },
}
