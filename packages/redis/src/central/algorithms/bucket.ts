import type { Question } from '@weir/core/sync'
import { added, clock, num, numberOf, type Place, type ServerAlgorithm, timeIn, verdictBy } from './server-algorithm.ts'

/** As the steps of buckets have it: quotients are rounded, and a request that comes when it was told to must fit. */
const ROUNDING = 1e-10

/** Units that a bucket holds: `-1` stands for the limit. */
export function capacityOf({ policy: { parameters } }: Question, limit: number): number {
  const [, size = -1] = parameters
  return size === -1 || limit === 0 || limit === Number.POSITIVE_INFINITY ? limit : size
}

/** A number as Lua reads it. */
export function numeral(value: number): string {
  return value === Number.POSITIVE_INFINITY ? 'inf' : String(value)
}

/** Sets `pace` to the limit at whose rate the bucket drained, if `own` is set. */
export const OWN = `if own > 0 and limit > 0 and limit < math.huge then
  pace = math.max(math.min(own, limit), math.min(math.max(own, limit), usual))
end`

function state({ key, arg }: Place): string {
  return `${clock(arg(2))}
local interval, pace, level, at, lives = tonumber(${arg(0)}), tonumber(${arg(3)}), 0, now, 0
local usual, own = pace
local before = redis.call('HGET', ${key()}, 's')
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

/** Names how full the bucket is after so many units. A request without a limit fills it no further than to the brim. */
function fill({ arg }: Place): string {
  return `local after = limit == math.huge and math.max(level, math.min(level + units, tonumber(${arg(1)}))) or level + units`
}

/** The value of `s`. */
function packed(level: string, own: string): string {
  return `(${own} and struct.pack('<dddd', ${level}, now, lives, ${own}) or struct.pack('<ddd', ${level}, now, lives))`
}

/** Sets `own` after the request. `level` is the level of the bucket before it. */
export const NOTE = `if limit == usual or limit == 0 or limit == math.huge then own = nil
else own = (own or level == 0) and limit or -limit end`

/** Writes `after`; the key lives until it has run out, and is given more than that, so that it need not be told each time. */
function write({ key }: Place, undo = ''): string {
  return `local slow = math.min(usual, pace)
local needs = slow > 0 and slow < math.huge and after * interval / slow or interval
local extend = now + needs > lives
if extend then lives = now + 2 * needs + 1000 end
local added = redis.call('HSET', ${key()}, 's', ${packed('after', 'own')}, ARGV[1], ARGV[2])
if extend then redis.call('PEXPIRE', ${key()}, string.format('%.0f', math.min(2 * needs + 1000, 5e12))) end
if added > 0 then ${added(key(), undo)} end`
}

/**
 * Buckets that requests fill, and that lose the limit in each interval. `s` holds three numbers: units in the bucket, when they were, and
 * until when the key lives; and a fourth one where core's `BUCKET_STEP` notes that requests bring another limit.
 */
export const BUCKET: ServerAlgorithm = {
  takes: 4,
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
${write(place, `redis.call('HSET', ${place.key()}, 's', before)`)}`,
  add: (place) => `${state(place)}
${fill(place)}
after = math.min(after, 9007199254740991)
${NOTE}
${write(place)}`,
  // Units of that time have drained if a whole bucket would have drained since.
  back: (place) => `${state(place)}
local whole = pace > 0 and tonumber(${place.arg(1)}) * interval / pace or 0
if not (now - ${place.arg(4)} >= whole) then
  local after = math.max(0, level - units)
  ${write(place)}
end`,
  args(question, request, list) {
    const { limit, policy } = question
    const [interval, , , usual = limit] = policy.parameters
    // A request without a limit fills it no further.
    const capacity = limit === Number.POSITIVE_INFINITY ? Math.max(usual, capacityOf(question, usual)) : capacityOf(question, limit)
    list.push(String(interval), numeral(capacity), timeIn(request), numeral(usual))
    if (question.kind === 'give-back') list.push(String(question.at))
  },
  read(reply, question, time) {
    const [told, ...own] = (Array.isArray(reply) ? reply : [reply]).map(numberOf) as [number, ...number[]]
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, time, ...own], time)
  },
}
