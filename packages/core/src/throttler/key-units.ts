import type { Costs } from '../decide/costs.ts'
import type { Limiter } from '../decide/limiter.ts'
import { ALL_KEY, goesOnLocally, type PolicyOptions } from '../decide/policy.ts'
import { invalidOption, missingOption, show, WeirError } from '../report/errors.ts'
import { MOST_UNITS } from '../store/units.ts'
import { countedKey, limitersOf, type PolicyChoice } from './limiters-of.ts'
import { type CostsOption, chargeOne, costsIn, type RefundHost } from './refunds.ts'

/** The host of the keys whose units are corrected without a decision. */
export interface KeyUnitsHost extends RefundHost {
  /** In the order of the limiters. */
  readonly rules: readonly PolicyOptions<never>[]
}

/** Units of a key that count now: of all processes by the counts of this one, and of this one alone. */
export function countedUnits(limiter: Limiter, slot: number, now: number): { readonly used: number; readonly own: number } {
  const { meter } = limiter
  const known = meter.usedOf(slot, now)
  const over = meter.over?.(slot, now) ?? 0
  const used = over > 0 ? limiter.most(limiter.limitOf(slot)) + over : known
  // A process may still list units that have drained from a bucket.
  const own = meter.ownOf(slot, now)
  return { used, own: own < known ? own : used }
}

/** The key that a policy counts for a given one. */
export function keyAt(place: number, key: string, rules: KeyUnitsHost['rules']): string {
  return rules[place]?.key === ALL_KEY ? ALL_KEY : key
}

/** As `refundKey` or `chargeKey`, for each policy of the costs. */
export function forEachCost(call: 'refund' | 'charge', given: string, { cost }: CostsOption, host: KeyUnitsHost): Costs {
  const back: Record<string, number> = {}
  const all = Object.entries(costsIn(call, { cost }, host)).filter(([, units]) => units !== undefined)
  // A call that throws changes nothing.
  for (const [policy, units] of all) target(call, given, units, { policy }, host)
  for (const [policy, units] of all) {
    if (call === 'refund') back[policy] = refundKey(given, units, { policy }, host)
    else chargeKey(given, units as number, { policy }, host)
  }
  return back
}

/** As the throttler's `refund` by key: returns the units that came back. */
export function refundKey(given: string, some: number | undefined, options: PolicyChoice, host: KeyUnitsHost): number {
  const { limiter, key, units } = target('refund', given, some, options, host)
  const { meter } = limiter
  const slot = limiter.table.find(key)
  if (host.closed || slot < 0) return 0
  const now = host.now()
  const most = Math.min(units, meter.handed?.(slot, now) ?? countedUnits(limiter, slot, now).own)
  const back = most > 0 ? (meter.refundNewest?.(slot, most, now) ?? 0) : 0
  if (back > 0) host.freed(limiter.policy, key)
  return back
}

/** As the throttler's `charge` by key. */
export function chargeKey(given: string, some: number, options: PolicyChoice, host: KeyUnitsHost): void {
  const { limiter, key, units } = target('charge', given, some, options, host)
  if (!host.closed && units > 0) chargeOne(limiter, key, Math.min(units, MOST_UNITS), host.now())
}

/** Checks a call's arguments, and finds its limiter, key and units. It throws before anything has changed. */
function target(
  call: 'refund' | 'charge',
  given: string,
  units: number | undefined,
  options: PolicyChoice,
  host: KeyUnitsHost,
): { limiter: Limiter; key: string; units: number } {
  const key = countedKey(given)
  if (typeof units !== 'number' || !(units >= 0 && units < Number.POSITIVE_INFINITY)) {
    throw invalidOption('units', units, 'a finite number of at least 0')
  }
  const limiters = limitersOf(host.limiters, options, call)
  const [limiter] = limiters
  if (limiter === undefined) throw missingOption('policy', `The throttler has no policy yet, which ${call}(key, units) needs.`)
  if (limiters.length > 1) {
    const names = limiters.map(({ policy }) => show(policy.name)).join(', ')
    throw missingOption('policy', `Set it for ${call}(key, units) to one of ${names}.`)
  }
  const { policy } = limiter
  const inFlight = policy.algorithm.slots !== undefined
  if (inFlight || (call === 'refund' && goesOnLocally(policy))) {
    const why = inFlight ? 'counts requests in flight. Use release(decision)' : 'is counted by the store. Use refund(decision, units)'
    throw new WeirError('WEIR_INVALID_OPTION', `${call}(key, units) does not apply to policy ${show(policy.name)}, which ${why}.`)
  }
  return { limiter, key: keyAt(host.limiters.indexOf(limiter), key, host.rules), units }
}
