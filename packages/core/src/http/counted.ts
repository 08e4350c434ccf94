import type { Limits } from '../decide/asking.ts'
import type { Decision } from '../decide/decision.ts'
import type { Policy } from '../decide/policy.ts'
import type { Delayed } from '../throttler/delays.ts'

/** The rules that several throttlers share. Compared by identity. */
interface SharedNames {
  shares(id: string): boolean
}

/** A policy and key that counted a request. */
interface Count {
  readonly names: SharedNames
  readonly id: string
  readonly key: string
}

/** The policies that have already counted a request, for throttlers that share a rule. */
const counts = new WeakMap<object, Count[]>()

/** The part of a throttler that decides. */
export interface CountedThrottler<Name extends string> {
  readonly policies: readonly Policy[]
  decideAsync(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    places: readonly number[],
    applied: number,
    limits?: Limits,
    delayed?: Delayed | null,
  ): Decision<Name> | Promise<Decision<Name>>
}

/**
 * Decides by the policies that have not counted a request yet. Another throttler with the same rule, store and key may have counted it
 * before.
 *
 * @returns undefined if all policies have counted it
 */
export function decideUncounted<Name extends string>(
  names: SharedNames,
  throttler: CountedThrottler<Name>,
  request: object,
  keys: readonly (string | undefined)[],
  costs: readonly number[],
  places: readonly number[],
  limits?: Limits,
  delayed?: Delayed | null,
): Decision<Name> | Promise<Decision<Name>> | undefined {
  const earlier = counts.get(request) ?? []
  const left = places.filter(
    (place) => !earlier.some((one) => one.names === names && one.id === throttler.policies[place]?.id && one.key === keys[place]),
  )
  if (left.length === 0 && places.length > 0) return undefined
  const decision = throttler.decideAsync(keys, costs, left, left.length, limits, delayed)
  return decision instanceof Promise ? decision.then((decided) => noted(request, names, decided)) : noted(request, names, decision)
}

/** Notes the policies and keys that counted a request, if it was allowed. */
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
