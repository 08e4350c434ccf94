import type { Question } from '@weir/core/sync'
import { num, type Place, pair, pairOf, room, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

function ordinalOf({ policy: { parameters }, at }: Question): number {
  return Math.floor(at / (parameters[0] as number))
}

function used({ key }: Place): string {
  return `local used = redis.call('HGET', ${key()}, 'u')`
}

/** Writes `after`; a key that was not `used` before lives as long as its units count. */
function write({ key, arg }: Place): string {
  return `local added = redis.call('HSET', ${key()}, 'u', after, ARGV[1], ARGV[2])
if not used then redis.call('PEXPIRE', ${key()}, ${arg(0)})
elseif added > 0 then ${room(key())} end`
}

/**
 * The weighted counter of two windows of the epoch: a key for each, which holds `u`, the units taken. `look` reads two of them, a refund
 * changes the one that its units were taken in.
 */
export const SLIDING_COUNTER: ServerAlgorithm = {
  takes: 2,
  look: (place) => `${used(place)}
local previous, after = tonumber(redis.call('HGET', ${place.key(1)}, 'u') or 0), (used or 0) + units
if previous * ${place.arg(1)} + after <= limit and limit > 0 then ok, reply = true, ${pair('after', 'previous')}
else
  local told = -1 - (used or 0)
  reply = { ${num('told')}, ${num('previous')} }
end`,
  keep: write,
  add: (place) => `${used(place)}
local after = (used or 0) + units
${write(place)}`,
  back: (place) => `${used(place)}
if used then
  local after = math.max(0, used - units)
  ${write(place)}
end`,
  keys(question, name, list) {
    const ordinal = ordinalOf(question)
    list.push(`${name}:${ordinal}`, `${name}:${ordinal - 1}`)
  },
  args(question, _request, list) {
    const interval = question.policy.parameters[0] as number
    const ahead = (ordinalOf(question) + 1) * interval - question.at
    list.push(String(Math.ceil(3 * interval)), String(Math.min(1, Math.max(0, ahead / interval))))
  },
  read(reply, question) {
    const [told, previous] = pairOf(reply)
    return verdictBy(question, told >= 0, [previous, told >= 0 ? told : -1 - told, ordinalOf(question)], question.at)
  },
}
