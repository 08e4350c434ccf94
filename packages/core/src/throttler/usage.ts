import type { Exchanging } from '../counting/site.ts'
import type { Limiter } from '../decide/limiter.ts'
import { peekOne } from '../decide/peek.ts'
import type { PolicyOptions } from '../decide/policy.ts'
import { idOfKey } from '../keys/key-id.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import type { Coordinator } from './coordinator.ts'
import { keyAt } from './key-units.ts'
import { countedKey, limitersOf, type PolicyChoice } from './limiters-of.ts'
import type { LimitersNow } from './manual-blocks.ts'

/** Options of `usage`. */
export interface UsageOptions extends PolicyChoice {
  /**
   * Limits how long the store may take to answer: 1 ms to 1 minute.
   *
   * If the store is known to be down, the call doesn't wait.
   *
   * @default '1s'
   */
  readonly timeout?: Duration
}

/** How much of a policy's limit a key has used. */
export interface Usage<Name extends string = string> {
  /** The policy's name. */
  readonly policy: Name
  /** The counted key: a key of more than 256 characters becomes its beginning and a hash. `'all'` if all share one counter. */
  readonly key: string
  /** Units per interval. */
  readonly limit: number
  /**
   * Units taken, less refunded ones.
   *
   * It may be more than the limit.
   */
  readonly used: number
  /** True if the key has used units or is blocked. If the store counts them in the background, also if all were refunded. */
  readonly seen: boolean
  /** Units left, at least 0. */
  readonly remaining: number
  /** Time until all units are back. */
  readonly resetAfterMs: number
  /** How long the key is blocked, 0 if it is not. */
  readonly blockedForMs: number
  /** Whether the block is manual. */
  readonly manual: boolean
  /**
   * `'store'`: the sum over all processes. `'node'`: only this process, because the store did not answer within `timeout` or there is none.
   */
  readonly source: 'store' | 'node'
}

/** The members of the throttler that usage needs. */
export interface UsageParts extends LimitersNow {
  readonly coordinator: Coordinator | undefined
  /** The meters whose counts are synced. */
  meters(): readonly Exchanging[]
  /** In the order of the limiters. */
  readonly rules: readonly PolicyOptions<never>[]
}

/** Timers must be short. */
const LONGEST_WAIT = 60_000

/** As the throttler's. */
export async function usage(given: string, options: UsageOptions, parts: UsageParts): Promise<readonly Usage[]> {
  const counted = countedKey(given)
  const { limiters, rules } = parts
  const chosen = limitersOf(limiters, options, 'usage', ['policy', 'timeout'])
  const timeout = options.timeout === undefined ? 1_000 : parseDuration(options.timeout, 'timeout', 1, LONGEST_WAIT)
  parts.now()
  return await Promise.all(
    chosen.map((limiter) => {
      return usageOf(limiter, keyAt(limiters.indexOf(limiter), counted, rules), timeout, parts)
    }),
  )
}

async function usageOf(limiter: Limiter, key: string, timeout: number, parts: UsageParts): Promise<Usage> {
  const { policy } = limiter
  const { coordinator } = parts
  await coordinator?.loading
  // A local meter that stands in has no counts at the store.
  const meter = parts.meters().find((one) => one === limiter.meter)
  const told = meter && (await coordinator?.ask(meter, idOfKey(key), timeout))
  const now = parts.now()
  const { limit, resetAfterMs } = peekOne(limiter, key, 0, undefined, now)
  const slot = limiter.table.find(key)
  const used = meter && told ? Math.max(0, meter.usedIn(told.cells, now)) : slot < 0 ? 0 : limiter.meter.usedOf(slot, now)
  const block = slot < 0 ? undefined : limiter.blocks.of(slot, now)
  const blockedFor = Math.max(told?.blocked ?? 0, block === undefined ? 0 : block.until - now)
  return {
    policy: policy.name,
    key,
    limit,
    used,
    seen: used > 0 || blockedFor > 0 || told?.cells.some(({ taken }) => taken > 0) === true,
    remaining: Math.max(0, limit - used),
    resetAfterMs,
    blockedForMs: blockedFor,
    manual: blockedFor > 0 && (told?.manual ?? block?.manual) === true,
    source: told === undefined ? 'node' : 'store',
  }
}
