import type { Question } from '@weir/core/sync'
import { added, clock, num, numberOf, type Place, type ServerAlgorithm, timeIn, verdictBy } from './server-algorithm.ts'

/** As the steps of buckets have it: quotients are rounded, and a request that comes when it was told to must fit. */
const ROUNDING = 1e-10

/** Units that a bucket holds: `-1` stands for the limit. */
export function capacityOf({ policy: { parameters }, limit }: Question): number {
  const [, size = -1] = parameters
  return size === -1 || limit === 0 || limit === Number.POSITIVE_INFINITY ? limit : size
}

function state({ key, arg }: Place): string {
  return `${clock(arg(2))}
local interval, level, at, lives = tonumber(${arg(0)}), 0, now, 0
local before = redis.call('HGET', ${key()}, 's')
if before then
  level, at, lives = struct.unpack('<ddd', before)
  if limit == math.huge then level = 0
  elseif now > at then
    level = level - (now - at) * limit / interval
    if level < 0 then level = 0 end
  end
end`
}

/** Writes `after`; the key lives until it has run out, and is given more than that, so that it need not be told each time. */
function write({ key }: Place, undo = ''): string {
  return `local needs = limit > 0 and limit < math.huge and after * interval / limit or interval
local extend = now + needs > lives
if extend then lives = now + 2 * needs + 1000 end
local added = redis.call('HSET', ${key()}, 's', struct.pack('<ddd', after, now, lives), ARGV[1], ARGV[2])
if extend then redis.call('PEXPIRE', ${key()}, string.format('%.0f', math.min(2 * needs + 1000, 5e12))) end
if added > 0 then ${added(key(), undo)} end`
}

/**
 * Buckets that requests fill, and that lose the limit in each interval. `s` holds three numbers: units in the bucket, when they were, and
 * until when the key lives.
 */
export const BUCKET: ServerAlgorithm = {
  takes: 3,
  look: (place) => `${state(place)}
local capacity, after = tonumber(${place.arg(1)}), level + units
if units <= capacity - level + capacity * ${ROUNDING} and limit > 0 then ok, reply = true, ${num('after')}
else
  local told = -1 - level
  reply = ${num('told')}
  -- A clock that has gone back must not close the bucket until it is where it was.
  if at > now then redis.call('HSET', ${place.key()}, 's', struct.pack('<ddd', level, now, lives)) end
end`,
  keep: (place) => write(place, `redis.call('HSET', ${place.key()}, 's', before)`),
  add: (place) => `${state(place)}
local after = math.min(level + units, 9007199254740991)
${write(place)}`,
  // What came in then has run out when a whole bucket would have.
  back: (place) => `${state(place)}
local whole = limit > 0 and tonumber(${place.arg(1)}) * interval / limit or 0
if not (now - ${place.arg(3)} >= whole) then
  local after = math.max(0, level - units)
  ${write(place)}
end`,
  args(question, request, list) {
    const capacity = capacityOf(question)
    const size = capacity === Number.POSITIVE_INFINITY ? 'inf' : String(capacity)
    list.push(String(question.policy.parameters[0]), size, timeIn(request))
    if (question.kind === 'give-back') list.push(String(question.at))
  },
  read(reply, question, time) {
    const told = numberOf(reply)
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, time], time)
  },
}
