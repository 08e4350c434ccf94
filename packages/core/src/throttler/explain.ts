import type { Coordination } from '../algorithms/algorithm.ts'
import type { Limiter } from '../decide/limiter.ts'
import { peekOne } from '../decide/peek.ts'
import { goesOnLocally, type PolicyOptions } from '../decide/policy.ts'
import { isCost } from '../keys/units.ts'
import { type DecisionReason, LOCAL, type RejectionReason, type RejectionSource } from '../report/stats.ts'
import { countedUnits, keyAt } from './key-units.ts'
import { countedKey } from './limiters-of.ts'
import type { LimitersNow } from './manual-blocks.ts'

/**
 * Why one policy would allow or reject the next request of a key, by the counts that this process has. Fractions of units have three
 * decimals.
 */
export interface Explanation<Name extends string = string> {
  /** The policy's name. */
  readonly policy: Name
  /** The counted key: a key of more than 256 characters becomes its beginning and a hash. `'all'` if all share one counter. */
  readonly key: string
  /** The algorithm's id, e.g. `'fixed-window'`. */
  readonly algorithm: string
  /** The policy's coordination. */
  readonly coordination: Coordination
  /**
   * The policy's, or that of the key's last request.
   *
   * Units per interval, or in flight.
   */
  readonly limit: number
  /**
   * Units that this process counted. Absent with `'central'`.
   *
   * They still count. With `'central'` the store counts.
   */
  readonly own?: number
  /**
   * Units of the other processes as last received. With `'central'`, the units of all.
   *
   * 0 with `'local'`.
   */
  readonly others: number
  /**
   * Greatest age of `others`.
   *
   * They may contain more recent units. Absent if the store has not answered about this key yet, and without a store.
   */
  readonly othersAgeMs?: number
  /** Units left, 0 for a blocked key. */
  readonly remaining: number
  /** Whether the key is blocked. */
  readonly blocked: boolean
  /** Milliseconds until the block ends, 0 if there is none. */
  readonly blockedForMs: number
  /** Why the key is blocked: it exceeded its limit, or your code called `block`. Absent if it is not blocked. */
  readonly blockedBy?: 'cooldown' | 'manual'
  /**
   * `'allow'` or `'reject'`: the decision about a request that costs the policy's `cost` or 1. With `dryRun` it is `'allow'`, and `reason`
   * is why it would be rejected.
   */
  readonly next: 'allow' | 'reject'
  /** As in decisions. */
  readonly reason: DecisionReason
  /** Time after which a rejected request would be allowed. 0 if `next` is `'allow'`. */
  readonly retryAfterMs: number
  /**
   * Origin of a rejection: `'local'` (this process), `'global'` (a reply of the store), `'announcement'`, `'storeDown'` or `'overflow'`.
   *
   * Absent if nothing rejects the request.
   */
  readonly source?: RejectionSource
}

/** The host of the keys to explain. */
export interface ExplainHost extends LimitersNow {
  /** In the order of the limiters. */
  readonly rules: readonly PolicyOptions<never>[]
}

/** Milliseconds by which a difference of times may be wrong. */
const ROUNDING = 1e-6

/** As the throttler's. */
export function explain(given: string, host: ExplainHost): readonly Explanation[] {
  const key = countedKey(given)
  const { limiters, rules } = host
  const now = host.now()
  return limiters.map((limiter, place) => {
    const cost = rules[place]?.cost
    return explainAt(limiter, keyAt(place, key, rules), isCost(cost) ? cost : 1, now)
  })
}

function explainAt(limiter: Limiter, key: string, cost: number, now: number): Explanation {
  const { meter, policy, stats } = limiter
  // First, because it rolls the key's counts to this moment.
  const decision = peekOne(limiter, key, cost, limiter.givenTo(key), now)
  const { allowed, reason } = decision
  const found = limiter.table.find(key)
  const slot = found < 0 && limiter.overflowing ? limiter.sharedSlot : found
  const isKnown = slot >= 0
  const { used, own } = isKnown ? countedUnits(limiter, slot, now) : { used: 0, own: 0 }
  const block = isKnown ? limiter.blocks.of(slot, now) : undefined
  const heardAt = (isKnown ? meter.syncing?.heardAt(slot) : undefined) ?? Number.NEGATIVE_INFINITY
  const storeCounts = policy.algorithm.slots === undefined && goesOnLocally(policy)
  return {
    policy: policy.name,
    key,
    algorithm: policy.algorithm.id,
    coordination: policy.coordination,
    limit: decision.limit,
    ...(!storeCounts && { own: rounded(own) }),
    others: rounded(storeCounts ? used : Math.max(0, used - own)),
    ...(heardAt > Number.NEGATIVE_INFINITY && { othersAgeMs: Math.round(now - heardAt) }),
    remaining: rounded(decision.remaining),
    blocked: block !== undefined,
    blockedForMs: block === undefined ? 0 : Math.ceil(block.until - now - ROUNDING),
    ...(block !== undefined && { blockedBy: block.manual ? 'manual' : 'cooldown' }),
    next: allowed ? 'allow' : 'reject',
    reason,
    retryAfterMs: decision.retryAfterMs,
    ...(reason !== 'ok' && {
      source: sourceOf(reason as RejectionReason, block?.source ?? (isKnown ? meter.sourceOf(slot, cost) : LOCAL), stats),
    }),
  }
}

function sourceOf(reason: RejectionReason, index: number, { kinds }: Limiter['stats']): RejectionSource {
  // Rejections by limit come first in `kinds`, so the index of a source is its index there.
  return reason === 'storeDown' || reason === 'overflow' ? reason : (kinds[index] as { readonly source: RejectionSource }).source
}

function rounded(units: number): number {
  return Math.round(units * 1_000) / 1_000
}
