import type { Decision, PolicyDecision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Policy } from '../decide/policy.ts'
import { idOfKey } from '../keys/key-id.ts'
import { isCost } from '../keys/units.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import { isThenable } from '../report/user-function.ts'
import { MOST_UNITS } from '../store/units.ts'
import type { Clock } from '../time/clock.ts'
import type { LimitersNow } from './manual-blocks.ts'

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
export function giveBack(decision: Pick<Decision, 'parts'>, units: number, what: Given, host: RefundHost): void {
  if (host.closed) return
  const now = host.clock.monotonic()
  for (const part of decision.parts as readonly PolicyDecision[]) {
    // A copy of a part, as JSON makes it, has no amount.
    if (typeof part.amount !== 'number' || part.policy === undefined) continue
    const back = Math.min(units, part.cost)
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
export function refund(decision: Decision, units: number = Number.POSITIVE_INFINITY, host: RefundHost): undefined {
  checkDecision(decision)
  if (typeof units !== 'number' || !(units > 0)) return
  giveBack(decision, units, 'units', host)
  for (const { policy, key } of decision.parts) if (policy !== undefined) host.freed(policy, key)
}

/** Counts more units for an allowed decision, whether or not they fit: as the throttler's. */
export function charge(decision: Decision, given: number, host: RefundHost): void {
  checkDecision(decision)
  if (host.closed || given === 0) return
  if (!isCost(given)) {
    const what = `charge() got ${show(given)} units, and counted nothing. Use a finite number > 0.`
    host.warn(new WeirError('WEIR_WARN_INVALID_COST', what), 'charge')
    return
  }
  // A rejected request used no units, and pays nothing. The same applies if a guard's dry run lets it pass.
  if (!decision.allowed || decision.parts.some(({ allowed }) => !allowed)) return
  const units = Math.min(given, MOST_UNITS)
  const now = host.now()
  for (const part of decision.parts) {
    const limiter = host.limiters.find(({ policy }) => policy.name === part.policy?.name)
    // A request in flight keeps its slots, whatever it costs.
    if (limiter === undefined || part.dryRun || limiter.policy.algorithm.slots !== undefined) continue
    chargeOne(limiter, part.key, units, now)
  }
}

/** Counts units of a key at one policy, whether or not they fit. */
export function chargeOne(limiter: Limiter, key: string, units: number, now: number): void {
  const slot = limiter.locate(key)
  if (slot < 0) return
  const fits = limiter.meter.allows(slot, units, now)
  limiter.meter.add(slot, units, now)
  if (!fits) limiter.meter.exceeded?.(slot, now)
}
