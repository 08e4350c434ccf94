import { isCost } from '../keys/units.ts'
import { WeirError } from '../report/errors.ts'
import { alternatives, show } from '../report/show.ts'

/** Units of a request for each policy, by name. Policies without one are not counted. */
export type Costs<Name extends string = string> = { readonly [N in Name]?: number | undefined }

/** The part of a limiter that costs need. */
interface Named {
  readonly policy: { readonly name: string }
}

/** The costs of a request by the indexes of the policies, and the indexes of the policies that count it. */
export interface PlacedCosts {
  readonly costs: readonly number[]
  readonly places: readonly number[]
}

/** Whether a cost is one for each policy. */
export function isByName(cost: unknown): cost is Costs {
  return typeof cost === 'object' && cost !== null && !Array.isArray(cost)
}

/**
 * Whether a function returned usable units by policy name, at least one. An unknown name is a typing error, which would leave its policy
 * uncounted, and a `Map` has no names.
 */
export function isCosts(answer: unknown, names: ReadonlySet<string>): answer is Costs {
  try {
    if (!isByName(answer)) return false
    const prototype: unknown = Object.getPrototypeOf(answer)
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return false
    const given = Object.entries(answer).filter(([, units]) => units !== undefined)
    return given.length > 0 && given.every(([name, units]) => isCost(units) && names.has(name))
  } catch {
    return false
  }
}

/**
 * @param all the indexes of all limiters, which is returned if every policy has a cost
 * @throws WeirError `WEIR_UNKNOWN_POLICY`
 */
export function placed(given: Costs, limiters: readonly Named[], all: readonly number[]): PlacedCosts {
  const costs: number[] = new Array(limiters.length)
  let named = 0
  for (let i = 0; i < limiters.length; i++) {
    const cost = costIn(given, (limiters[i] as Named).policy.name)
    costs[i] = cost ?? 1
    if (cost !== undefined) named++
  }
  let names = 0
  for (const name in given) if (given[name] !== undefined) names++
  if (names !== named) throw unknownName(given, limiters)
  return {
    costs,
    places: named === limiters.length ? all : all.filter((i) => costIn(given, (limiters[i] as Named).policy.name) !== undefined),
  }
}

/** The cost for a policy, whose name may be that of an inherited property. */
export function costIn(given: Costs, name: string): number | undefined {
  const cost = given[name]
  return typeof cost === 'number' || Object.hasOwn(given, name) ? cost : undefined
}

function unknownName(given: Costs, limiters: readonly Named[]): WeirError {
  const names = limiters.map(({ policy }) => policy.name)
  return unknownPolicy(
    Object.keys(given).find((name) => !names.includes(name)),
    names,
  )
}

export function unknownPolicy(name: unknown, names: readonly string[]): WeirError {
  return new WeirError(
    'WEIR_UNKNOWN_POLICY',
    `Unknown policy ${show(name)}. This throttler has ${alternatives(names, 'and') || 'none yet'}.`,
  )
}
