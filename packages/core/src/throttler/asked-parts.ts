import type { Decision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { PolicyOptions } from '../decide/policy.ts'
import type { RequestPath } from '../decide/request-path.ts'
import type { Wanted } from '../queue/options.ts'

/** The policies of a throttler. */
export interface AskedHost {
  readonly limiters: readonly Limiter[]
  /** In the order of the limiters. */
  readonly rules: readonly PolicyOptions<never>[]
}

/** The part of a throttler that decides requests. */
export interface DecidingHost extends AskedHost {
  readonly path: Pick<RequestPath<string>, 'limitKey' | 'decideAsync'>
}

/** A request's key, cost and limit for one policy. */
export interface AskedPart {
  readonly limiter: Limiter
  readonly place: number
  readonly key: string
  readonly cost: number
  readonly limit: number | undefined
}

/** A request's key, cost and limit for each policy that applies to it. */
export function asked(host: AskedHost, key: string, { asked, cost, limit }: Wanted): AskedPart[] {
  const { limiters } = host
  if (asked === undefined) {
    return limiters.map((limiter, place) => {
      return { limiter, place, key: keyAt(host, place, key), cost: cost ?? costAt(host, place, undefined), limit }
    })
  }
  const { keys, costs, places, limits } = asked.at(limiters)
  return places.map((place) => ({
    limiter: limiters[place] as Limiter,
    place,
    key: keys[place] as string,
    cost: costs[place] as number,
    limit: limits?.[place],
  }))
}

/** Decides a request that costs as much as `many` of these parts, by their policies alone. */
export function decideParts(
  { path, limiters }: DecidingHost,
  key: string,
  { asked, limit }: Wanted,
  parts: readonly AskedPart[],
  many: number = 1,
): Decision | Promise<Decision> {
  const keys: (string | undefined)[] = limiters.map(() => undefined)
  const costs = limiters.map(() => 1)
  for (const part of parts) {
    keys[part.place] = part.key
    costs[part.place] = part.cost * many
  }
  const limits = asked?.at(limiters).limits
  if (limits === undefined) path.limitKey(key, limit)
  const places = parts.map(({ place }) => place)
  return path.decideAsync(keys, costs, places, places.length, limits)
}

/** The cost of a request without one of its own. */
export function costAt({ rules, limiters }: AskedHost, place: number, wanted: Wanted | undefined): number {
  if (wanted?.asked !== undefined) return wanted.asked.at(limiters).costs[place] ?? 1
  const usual = rules[place]?.cost
  return typeof usual === 'number' ? usual : 1
}

/** The key that a policy counts. */
function keyAt({ rules }: AskedHost, place: number, key: string): string {
  return rules[place]?.key === 'all' ? 'all' : key
}
