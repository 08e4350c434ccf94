import type { Decision } from '../decide/decision.ts'
import type { Names } from '../throttler/names.ts'

/** What a request was counted by. */
interface Count {
  readonly names: Names
  readonly id: string
  readonly key: string
}

/** Of requests that passed a throttler whose rule another one has too. */
const counts = new WeakMap<object, Count[]>()

/**
 * The places of the policies by which a request is still to be counted: not of those that it was counted by already, by
 * another throttler with the same rule, store and key.
 *
 * @param ids of all policies, in their order
 */
export function uncounted(
  request: object,
  names: Names,
  ids: readonly string[],
  keys: readonly (string | undefined)[],
  places: readonly number[],
): readonly number[] {
  const earlier = counts.get(request)
  if (earlier === undefined) return places
  return places.filter((place) => !earlier.some((one) => one.names === names && one.id === ids[place] && one.key === keys[place]))
}

/** Notes what an admitted request was counted by. */
export function noteCounted(request: object, names: Names, { parts }: Decision): void {
  for (const { policy, key } of parts) {
    if (policy === undefined || !names.shares(policy.id)) continue
    const list = counts.get(request)
    const count = { names, id: policy.id, key }
    if (list === undefined) counts.set(request, [count])
    else list.push(count)
  }
}
