import { type Costs, isByName, placed } from '../decide/costs.ts'
import type { Decision, PolicyDecision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Policy } from '../decide/policy.ts'
import { idOfKey } from '../keys/key-id.ts'
import { isCost } from '../keys/units.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import { checkNames } from '../report/names.ts'
import { isThenable } from '../report/user-function.ts'
import { MOST_UNITS } from '../store/units.ts'
import type { Clock } from '../time/clock.ts'
import type { LimitersNow } from './manual-blocks.ts'

/** Units for each policy, by name. */
export interface CostsOption<Name extends string = string> {
  /** Sets the units of each policy, by name. Other policies don't change. */
  readonly cost: Costs<Name>
}

/** The units of a call of `refund` or `charge`. */
type Units = number | CostsOption

/** The units of a decision to return: of intervals, slots of requests in flight, or all of them, because the request never went. */
export type Given = 'units' | 'slots' | 'all'

/** The throttler whose decisions are corrected. Nothing changes any more once it is closed. */
export interface RefundHost extends LimitersNow {
  readonly clock: Clock
  readonly closed: boolean
  /** Rolls a limiter to the running interval. */
  roll(limiter: Limiter, now: number): void
  warn(error: WeirError, subject: string): void
  /** A policy's key may have capacity again. */
  freed(policy: Policy, key: string): void
}

/** @throws WeirError `WEIR_INVALID_OPTION` for a value that is no decision, such as the promise of one */
export function checkDecision(given: Pick<Decision, 'parts'>): void {
  if (Array.isArray(given?.parts)) return
  const next = isThenable(given) ? 'It is a promise: await it.' : ''
  throw invalidOption('decision', given, 'the decision that check(), await checkAsync(key) or await acquire(key) returned', next)
}

/**
 * Returns units of an allowed decision, at most its remaining cost at each policy.
 *
 * @param what the units to return. Slots stay in use until the request has ended, whatever else is refunded
 */
export function giveBack(decision: Pick<Decision, 'parts'>, units: number | Costs, what: Given, host: RefundHost): void {
  if (host.closed) return
  const now = host.clock.monotonic()
  for (const part of decision.parts as readonly PolicyDecision[]) {
    // A copy of a part, as JSON makes it, has no amount.
    if (typeof part.amount !== 'number' || part.policy === undefined) continue
    const back = Math.min(isByName(units) ? (units[part.policy.name] ?? 0) : units, part.cost)
    const { id, algorithm } = part.policy
    if (what !== 'all' && (algorithm.slots === undefined ? 'units' : 'slots') !== what) continue
    const limiter = host.limiters.find(({ policy }) => policy.id === id)
    if (!(back > 0) || limiter === undefined) continue
    part.amount -= back
    // The request never went.
    if (what === 'all') limiter.meter.allowed -= back
    if (now >= limiter.meter.rollAt) host.roll(limiter, now)
    // A reset has already returned them.
    if (limiter.resets.since(idOfKey(part.key), part.serial)) continue
    limiter.meter.refund(part.key, part.ordinal, back, now)
  }
}

/** As the throttler's. */
export function refund(decision: Decision, units: Units = Number.POSITIVE_INFINITY, host: RefundHost): undefined {
  checkDecision(decision)
  if (hasCosts(units)) giveBack(decision, costsIn('refund', units, host), 'units', host)
  else if (typeof units === 'number' && units > 0) giveBack(decision, units, 'units', host)
  else return
  for (const { policy, key } of decision.parts) if (policy !== undefined) host.freed(policy, key)
}

/** Counts more units for an allowed decision, whether or not they fit: as the throttler's. */
export function charge(decision: Decision, given: Units, host: RefundHost): void {
  checkDecision(decision)
  const costs = hasCosts(given) ? costsIn('charge', given, host) : undefined
  if (host.closed || given === 0) return
  const all: readonly unknown[] = costs === undefined ? [given] : Object.values(costs).filter((units) => units !== undefined && units !== 0)
  if (!all.every(isCost)) {
    const what = `charge() got ${show(all.find((units) => !isCost(units)))} units, and counted nothing. Use a finite number > 0.`
    host.warn(new WeirError('WEIR_WARN_INVALID_COST', what), 'charge')
    return
  }
  // A rejected request used no units, and pays nothing. The same applies if a guard's dry run lets it pass.
  if (!decision.allowed || decision.parts.some(({ allowed }) => !allowed)) return
  const now = host.now()
  for (const part of decision.parts) {
    const limiter = host.limiters.find(({ policy }) => policy.name === part.policy?.name)
    // A request in flight keeps its slots, whatever it costs.
    if (limiter === undefined || part.dryRun || limiter.policy.algorithm.slots !== undefined) continue
    const units = costs === undefined ? (given as number) : costs[limiter.policy.name]
    if (units !== undefined && units > 0) chargeOne(limiter, part.key, Math.min(units, MOST_UNITS), now)
  }
}

/** Whether a call has units for each policy. */
export function hasCosts(units: unknown): units is CostsOption {
  return isByName(units) && 'cost' in units
}

/**
 * The units by policy name.
 *
 * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_UNKNOWN_OPTION`, `WEIR_INVALID_OPTION`
 */
export function costsIn(call: string, given: CostsOption, { limiters }: LimitersNow): Costs {
  checkNames(`${call}()`, given, ['cost'])
  const { cost } = given
  if (!isByName(cost)) throw invalidOption('cost', cost, 'units by policy name, such as { tokens: 900 }')
  placed(
    cost,
    limiters,
    limiters.map((_, i) => i),
  )
  return cost
}

/** Counts units of a key at one policy, whether or not they fit. */
export function chargeOne(limiter: Limiter, key: string, units: number, now: number): void {
  const slot = limiter.locate(key)
  if (slot < 0) return
  const fits = limiter.meter.allows(slot, units, now)
  limiter.meter.add(slot, units, now)
  if (!fits) limiter.meter.exceeded?.(slot, now)
}
