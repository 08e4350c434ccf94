import { capacityOf, NOTE, numeral, OWN } from './bucket.ts'
import { added, clock, listOf, noted, numberOf, type Place, type ServerAlgorithm, timeIn, unmarked, verdictBy } from './server-algorithm.ts'

function state(place: Place): string {
  const { key, arg } = place
  const read = `before = redis.call('HGET', ${key()}, 's')`
  return `${clock(arg(4))}
local interval, duration, pace = tonumber(${arg(0)}), tonumber(${arg(2)}), tonumber(${arg(5)})
local owed, at, warmth, lives = 0, now, 0, 0
local usual, own = pace
local ${read}
${unmarked(place, 'before', read)}
if before then
  owed, at, warmth, lives = struct.unpack('<dddd', before)
  if #before > 32 then
    own = struct.unpack('<d', before, 33)
    ${OWN}
  end
  if now > at then
    local elapsed, time = now - at, 0
    if owed > 0 then time = pace > 0 and owed * interval / pace or math.huge end
    warmth = math.max(0, warmth - math.max(0, elapsed - time) / duration)
    owed = math.max(0, owed - elapsed * pace / interval)
  end
end
local level = owed`
}

/** Changes `owed` and `warmth` by these units. */
function fill({ arg }: Place, units: string): string {
  return `local change, cold, by = ${units}, tonumber(${arg(3)}), pace
if limit > 0 and limit < math.huge and (owed == 0 or pace == 0 or pace == math.huge) then by = limit end
local time = change
if by > 0 and by < math.huge then
  local threshold = 0.5 * duration * by / interval
  local most = threshold * (1 + 4 / (1 + cold))
  local slope = (cold * cold - 1) / (4 * threshold)
  local here = (1 - warmth) * most
  local high = change > 0 and here or math.min(most, here - change)
  local above = high - threshold
  local slow = math.max(0, math.min(change > 0 and change or high - here, above))
  local more = slow * slope * (2 * above - slow) / 2
  time = change > 0 and change + more or change - more
  warmth = math.min(1, math.max(0, warmth + change / most))
end
if change > 0 and limit == math.huge then time = math.max(0, math.min(time, ${arg(1)} - owed)) end
owed = math.max(0, math.min(9007199254740991, owed + time))`
}

/** The value of `s`. */
const PACKED = "(own and struct.pack('<ddddd', owed, now, warmth, lives, own) or struct.pack('<dddd', owed, now, warmth, lives)) .. open"

function write(place: Place, undo = ''): string {
  const key = place.key()
  return `local slow = math.min(usual, pace)
local needs = (slow > 0 and slow < math.huge and owed * interval / slow or interval) + warmth * duration
local extend = now + needs > lives
if extend then lives = math.max(now + 2 * needs + 1000, latest) end
local added = redis.call('HSET', ${key}, 's', ${PACKED}${noted(place)})
if extend then redis.call('PEXPIRE', ${key}, string.format('%.0f', math.min(lives - now, 5e12))) end
if added > 0 then ${added(key, undo)} end`
}

/**
 * Token buckets that must warm up, as core's `WARM_UP_STEP` describes them. `s` has four numbers: the level in units, its time, the key's
 * warmth, and the time of its expiry. If requests bring another limit, `own` follows, as for `BUCKET`.
 */
export const WARM_UP: ServerAlgorithm = {
  takes: 6,
  time: 4,
  field: 's',
  empty: "struct.pack('<dddd', 0, 0, 0, 0)",
  look: (place) => `${state(place)}
local capacity = tonumber(${place.arg(1)})
if limit == math.huge or limit > 0 and units <= capacity - owed + capacity * 1e-10 then
  ok = true
  if units > 0 then
    ${fill(place, 'units')}
  end
elseif at > now then redis.call('HSET', ${place.key()}, 's', ${PACKED}) end
reply = { ok and 1 or 0, string.format('%.17g', owed), string.format('%.17g', warmth), own and string.format('%.17g', own) }`,
  keep: (place) => `${NOTE}
${write(place, `redis.call('HSET', ${place.key()}, 's', before .. open)`)}`,
  add: (place) => `${state(place)}
${fill(place, 'units')}
${NOTE}
${write(place)}`,
  back: (place, at) => `${state(place)}
local whole = pace > 0 and ${place.arg(1)} * interval / pace or 0
if not (now - ${at} >= whole) then
  ${fill(place, '-units')}
  ${write(place)}
end`,
  args(question, request, list) {
    const { limit, policy } = question
    const [interval = 0, , duration = 0, coldFactor = 0, usual = limit] = policy.parameters
    // A request without a limit fills it up to this size at most.
    const capacity = limit === Number.POSITIVE_INFINITY ? Math.max(usual, capacityOf(question, usual)) : capacityOf(question, limit)
    list.push(String(interval), numeral(capacity), String(duration), String(coldFactor), timeIn(request), numeral(usual))
    if (question.kind === 'give-back') list.push(String(question.at))
  },
  read(reply, question, time) {
    const [allowed, owed, warmth, ...own] = listOf(reply).map(numberOf) as [number, number, number, ...number[]]
    return verdictBy(question, allowed === 1, [owed, time, warmth, ...own], time)
  },
}
