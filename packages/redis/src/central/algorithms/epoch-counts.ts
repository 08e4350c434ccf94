import type { Question } from '@weir/core/sync'
import { added, marked, noted, type Place, unmarked } from './server-algorithm.ts'

// Counts by intervals of the epoch. Each interval has a key with a hash, and its field `u` contains the units taken.

/** The interval of a question. */
export function ordinalOf({ policy: { parameters }, at }: Pick<Question, 'policy' | 'at'>): number {
  return Math.floor(at / (parameters[0] as number))
}

/** Sets `used` to the units taken, or nil for none. */
export function used(place: Place): string {
  const read = `used = redis.call('HGET', ${place.key()}, 'u')`
  return `local ${read}
${unmarked(place, 'used', read)}`
}

/** Writes `after`. A new key (without `used`) lives for the time in the first argument. */
function write(place: Place, undo = ''): string {
  const key = place.key()
  return `local added = redis.call('HSET', ${key}, 'u', ${marked('after')}${noted(place)})
if not used then redis.call('PEXPIRE', ${key}, ${place.arg(0)})
elseif added > 0 then ${added(key, undo)} end`
}

/** Does the same as `write`, for a request that fits. */
export function keep(place: Place): string {
  return write(place, `redis.call('HSET', ${place.key()}, 'u', used .. open)`)
}

/** Counts units whether or not they fit, and refunds units. */
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
