import type { Question } from '@weir/core/sync'
import { num, numberOf, type Place, room, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

/** By when a node says that a window ends it is over; its key waits for clocks that differ, in milliseconds. */
const LINGER = 10_000

function ordinalOf({ policy: { parameters }, at }: Question): number {
  return Math.floor(at / (parameters[0] as number))
}

function used({ key }: Place): string {
  return `local used = redis.call('HGET', ${key()}, 'u')`
}

/** Writes `after`; a key that was not `used` before lives until its window is over. */
function write({ key, arg }: Place): string {
  return `local added = redis.call('HSET', ${key()}, 'u', after, ARGV[1], ARGV[2])
if not used then redis.call('PEXPIRE', ${key()}, ${arg(0)})
elseif added > 0 then ${room(key())} end`
}

/** Windows of the epoch: a key for each, which holds `u`, the units taken. */
export const FIXED_WINDOW: ServerAlgorithm = {
  takes: 1,
  look: (place) => `${used(place)}
local after = (used or 0) + units
if after <= limit and limit > 0 then ok, reply = true, ${num('after')}
else
  local told = -1 - (used or 0)
  reply = ${num('told')}
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
    list.push(`${name}:${ordinalOf(question)}`)
  },
  args(question, _request, list) {
    const { parameters } = question.policy
    list.push(String(Math.ceil((ordinalOf(question) + 1) * (parameters[0] as number) - question.at) + LINGER))
  },
  read(reply, question) {
    const told = numberOf(reply)
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, ordinalOf(question)], question.at)
  },
}
