import type { Question } from '@weir/core/sync'
import { added, clock, noted, num, numberOf, type Place, type ServerAlgorithm, timeIn, unmarked, verdictBy } from './server-algorithm.ts'

/** The same tolerance as in the steps of buckets, because quotients are rounded. A request that arrives at its `retryAfterMs` must fit. */
const ROUNDING = 1e-10

/** The size of a bucket in units. `-1` stands for the limit. */
export function capacityOf({ policy: { parameters } }: Question, limit: number): number {
  const [, size = -1] = parameters
  return size === -1 || limit === 0 || limit === Number.POSITIVE_INFINITY ? limit : size
}

/** A number in Lua's notation. */
export function numeral(value: number): string {
  return value === Number.POSITIVE_INFINITY ? 'inf' : String(value)
}

/** Sets `pace` to the limit at whose rate the bucket drained, if `own` is set. */
export const OWN = `if own > 0 and limit > 0 and limit < math.huge then
  pace = math.max(math.min(own, limit), math.min(math.max(own, limit), usual))
end`

function state(place: Place): string {
  const { key, arg } = place
  const read = `before = redis.call('HGET', ${key()}, 's')`
  return `${clock(arg(2))}
local interval, pace, level, at, lives = tonumber(${arg(0)}), tonumber(${arg(3)}), 0, now, 0
local usual, own = pace
local ${read}
${unmarked(place, 'before', read)}
if before then
  level, at, lives = struct.unpack('<ddd', before)
  if #before > 24 then
    own = struct.unpack('<d', before, 25)
    ${OWN}
  end
  if pace == math.huge then level = 0
  elseif now > at then
    level = level - (now - at) * pace / interval
    if level < 0 then level = 0 end
  end
end`
}

/** Sets a variable to the level of the bucket after these units. A request without a limit fills it up to the size at most. */
function fill({ arg }: Place): string {
  return `local after = limit == math.huge and math.max(level, math.min(level + units, tonumber(${arg(1)}))) or level + units`
}

/** The value of `s`. */
function packed(level: string, own: string): string {
  return `(${own} and struct.pack('<dddd', ${level}, now, lives, ${own}) or struct.pack('<ddd', ${level}, now, lives)) .. open`
}

/** Sets `own` after the request. `level` is the bucket's level before it. */
export const NOTE = `if limit == usual or limit == 0 or limit == math.huge then own = nil
else own = (own or level == 0) and limit or -limit end`

/** Writes `after`. The key lives longer than until it is empty, so that the expiry need not be set each time. */
function write(place: Place, undo = ''): string {
  const key = place.key()
  return `local slow = math.min(usual, pace)
local needs = slow > 0 and slow < math.huge and after * interval / slow or interval
local extend = now + needs > lives
if extend then lives = math.max(now + 2 * needs + 1000, latest) end
local added = redis.call('HSET', ${key}, 's', ${packed('after', 'own')}${noted(place)})
if extend then redis.call('PEXPIRE', ${key}, string.format('%.0f', math.min(lives - now, 5e12))) end
if added > 0 then ${added(key, undo)} end`
}

/**
 * Buckets that requests fill, and that lose the limit in each interval. `s` contains three numbers: the units in the bucket, their time,
 * and the key's expiry. If core's `BUCKET_STEP` notes that requests bring another limit, there is a fourth one.
 */
export const BUCKET: ServerAlgorithm = {
  takes: 4,
  time: 2,
  field: 's',
  empty: "struct.pack('<ddd', 0, 0, 0)",
  look: (place) => `${state(place)}
local capacity = tonumber(${place.arg(1)})
${fill(place)}
if limit == math.huge or limit > 0 and units <= capacity - level + capacity * ${ROUNDING} then ok, reply = true, ${num('after')}
else
  local told = -1 - level
  reply = own and { ${num('told')}, ${num('own')} } or ${num('told')}
  -- A clock that has gone back must not close the bucket until it is where it was.
  if at > now then redis.call('HSET', ${place.key()}, 's', ${packed('level', 'own')}) end
end`,
  keep: (place) => `${NOTE}
${write(place, `redis.call('HSET', ${place.key()}, 's', before .. open)`)}`,
  add: (place) => `${state(place)}
${fill(place)}
after = math.min(after, 9007199254740991)
${NOTE}
${write(place)}`,
  // Units of that time have drained if a full bucket would have drained since.
  back: (place, at) => `${state(place)}
local whole = pace > 0 and tonumber(${place.arg(1)}) * interval / pace or 0
if not (now - ${at} >= whole) then
  local after = math.max(0, level - units)
  ${write(place)}
end`,
  args(question, request, list) {
    const { limit, policy } = question
    const [interval, , , usual = limit] = policy.parameters
    // A request without a limit fills it up to this size at most.
    const capacity = limit === Number.POSITIVE_INFINITY ? Math.max(usual, capacityOf(question, usual)) : capacityOf(question, limit)
    list.push(String(interval), numeral(capacity), timeIn(request), numeral(usual))
    if (question.kind === 'give-back') list.push(String(question.at))
  },
  read(reply, question, time) {
    const [told, ...own] = (Array.isArray(reply) ? reply : [reply]).map(numberOf) as [number, ...number[]]
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, time, ...own], time)
  },
}
