import type { Question } from '@weir/core/sync'
import { added, type Place } from './server-algorithm.ts'

// Counts by intervals of the epoch: a key for each, a hash that holds `u`, the units taken in it.

/** The interval that a question is of. */
export function ordinalOf({ policy: { parameters }, at }: Question): number {
  return Math.floor(at / (parameters[0] as number))
}

/** Names `used`, the units taken; nil for none. */
export function used({ key }: Place): string {
  return `local used = redis.call('HGET', ${key()}, 'u')`
}

/** Writes `after`; a key that was not `used` before lives as long as the first argument says. */
function write({ key, arg }: Place, undo = ''): string {
  return `local added = redis.call('HSET', ${key()}, 'u', after, ARGV[1], ARGV[2])
if not used then redis.call('PEXPIRE', ${key()}, ${arg(0)})
elseif added > 0 then ${added(key(), undo)} end`
}

/** As `write`, for a request that fits. */
export function keep(place: Place): string {
  return write(place, `redis.call('HSET', ${place.key()}, 'u', used)`)
}

/** Counts units whether or not they fit, and gives units back. */
export const ADD_AND_BACK: { add(place: Place): string; back(place: Place): string } = {
  add: (place) => `${used(place)}
local after = (used or 0) + units
${write(place)}`,
  back: (place) => `${used(place)}
if used then
  local after = math.max(0, used - units)
  ${write(place)}
end`,
}
