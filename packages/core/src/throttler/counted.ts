import type { Limits } from '../decide/asking.ts'
import type { Decision } from '../decide/decision.ts'
import type { Policy } from '../decide/policy.ts'
import type { Holding } from './delays.ts'

/** The rules that throttlers have in common; each of it is told from others by identity. */
interface SharedNames {
  shares(id: string): boolean
}

/** What a request was counted by. */
interface Count {
  readonly names: SharedNames
  readonly id: string
  readonly key: string
}

/** Of requests that passed a throttler whose rule another one has too. */
const counts = new WeakMap<object, Count[]>()

/** What is needed of the throttler that decides. */
export interface CountedThrottler<Name extends string> {
  readonly policies: readonly Policy[]
  decideAsync(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    places: readonly number[],
    applied: number,
    limits?: Limits,
    holding?: Holding | null,
  ): Decision<Name> | Promise<Decision<Name>>
}

/**
 * Decides by the policies by which a request is still to be counted: not by those that it was counted by already, by another
 * throttler with the same rule, store and key.
 *
 * @returns undefined when it was counted by all of them
 */
export function decideUncounted<Name extends string>(
  names: SharedNames,
  throttler: CountedThrottler<Name>,
  request: object,
  keys: readonly (string | undefined)[],
  costs: readonly number[],
  places: readonly number[],
  limits?: Limits,
  holding?: Holding | null,
): Decision<Name> | Promise<Decision<Name>> | undefined {
  const earlier = counts.get(request) ?? []
  const left = places.filter(
    (place) => !earlier.some((one) => one.names === names && one.id === throttler.policies[place]?.id && one.key === keys[place]),
  )
  if (left.length === 0 && places.length > 0) return undefined
  const decision = throttler.decideAsync(keys, costs, left, left.length, limits, holding)
  return decision instanceof Promise ? decision.then((decided) => noted(request, names, decided)) : noted(request, names, decision)
}

/** Notes what a request was counted by, if it was allowed. */
function noted<Name extends string>(request: object, names: SharedNames, decision: Decision<Name>): Decision<Name> {
  if (!decision.allowed) return decision
  for (const { policy, key } of decision.parts) {
    if (policy === undefined || !names.shares(policy.id)) continue
    const list = counts.get(request)
    const count = { names, id: policy.id, key }
    if (list === undefined) counts.set(request, [count])
    else list.push(count)
  }
  return decision
}
