import { type Duration, parseDuration } from '../../options/duration.ts'
import { excessOption, invalidOption } from '../../report/errors.ts'
import { checkAlgorithmOptions, checkNames } from '../../report/names.ts'
import { MOST_UNITS } from '../../store/units.ts'
import type { Algorithm } from '../algorithm.ts'
import { LocalBucket } from '../bucket/meter.ts'
import { BUCKET_STEP, capacityOf, DEFAULT } from '../bucket/step.ts'
import type { MeterPolicy } from '../meter.ts'
import { LocalWarmUp } from './warm-up-meter.ts'
import { WARM_UP_STEP } from './warm-up-step.ts'

/** Options of `tokenBucket`. */
export interface TokenBucketOptions {
  /**
   * Sets how many tokens a key can save, and so how many units are allowed at once: at least 1. A request can't cost more.
   *
   * @default the policy's `limit`
   */
  readonly burst?: number
  /**
   * Slows a key down after it was idle: for this long, at least 1 ms. Not with `'background'`, `maxDebt` or `earlyDrop`.
   *
   * Its tokens come slower at first, and at the full pace once it was in use for this long. After the same time without requests it is cold
   * again. An object also sets how much slower.
   *
   * @default none: tokens always come at the pace of the limit
   * @see `@weir/core/docs/reference/options.md#warmup`
   */
  readonly warmUp?: Duration | WarmUp
  /**
   * Limits how many units beyond `burst` a key pays back after distant processes allowed too many: at least 0. Ignored unless
   * `'background'`.
   *
   * The key opens sooner, but units that it doesn't pay back are allowed beyond the limit. Not allowed with `warmUp`.
   *
   * @default all of them are paid back
   * @see `@weir/core/docs/guides/far-regions.md`
   */
  readonly maxDebt?: number
  /**
   * Rejects some requests at random before the bucket is empty, so that it stays open in a flood and has no debt. Needs a burst of at least
   * four units per process. Ignored unless `'background'`.
   *
   * It does so while more arrive than the limit's pace. A fifth of the tokens stays free, so the key isn't blocked and nothing is allowed
   * beyond the limit, however far the store is. A few requests of a burst that just fits may be rejected. Not allowed with `warmUp`.
   *
   * @default false
   * @see `@weir/core/docs/guides/far-regions.md`
   */
  readonly earlyDrop?: boolean
}

/** How a token bucket warms up. */
export interface WarmUp {
  /** Sets how long a cold key takes to reach the full pace, and an idle key to become cold: at least 1 ms. */
  readonly duration: Duration
  /**
   * Sets how many times slower the tokens of a cold key come: more than 1, at most 100.
   *
   * @default 3
   */
  readonly coldFactor?: number
}

/**
 * Tokens come at the pace of `limit / interval`, all the time. A key saves at most `burst` of them, and each unit takes one. So requests
 * are spread evenly, whereas a window may be used up at its start. Units that `charge` counts beyond the remaining tokens are a debt.
 *
 * With `warmUp` (as Guava's `SmoothWarmingUp`) a unit takes more than one token while the key is cold, and the next request pays for that.
 * With `burst: 1` it allows the same requests as Guava's `tryAcquire`.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * const algorithm = tokenBucket({ burst: 20 }) // with limit: 100, interval: '1s': 20 at once, then one each 10 ms
 */
export function tokenBucket(options: TokenBucketOptions = {}): Algorithm {
  checkAlgorithmOptions('tokenBucket', options, ['burst', 'warmUp', 'maxDebt', 'earlyDrop'], '{ burst: 20 }')
  const { burst, warmUp, maxDebt, earlyDrop = false } = options
  if (burst !== undefined && !(typeof burst === 'number' && burst >= 1 && burst <= MOST_UNITS)) {
    throw invalidOption('burst', burst, `a number from 1 to ${MOST_UNITS}`)
  }
  if (maxDebt !== undefined && !(typeof maxDebt === 'number' && maxDebt >= 0))
    throw invalidOption('maxDebt', maxDebt, 'a number of at least 0')
  if (typeof earlyDrop !== 'boolean') throw invalidOption('earlyDrop', earlyDrop, 'true or false')
  for (const [name, value] of [
    ['maxDebt', maxDebt],
    ['earlyDrop', earlyDrop || undefined],
  ] as const) {
    if (value === undefined || warmUp === undefined) continue
    throw excessOption(name, 'it can\'t be combined with "warmUp"')
  }
  const size = burst ?? DEFAULT
  const most = (limit: number) => capacityOf(size, limit)
  const settings = (limit: number) => ({
    burst: most(limit),
    ...(maxDebt !== undefined && { maxDebt }),
    ...(earlyDrop && { earlyDrop: 1 }),
  })
  const base = { name: 'tokenBucket()', most, burst: most, settings }
  if (warmUp === undefined) {
    return Object.freeze({
      ...base,
      id: 'token-bucket',
      fields: 2,
      local: (site, exchange) => new LocalBucket(site, exchange),
      shape: { kind: 'bucket', coordinations: ['background'], maxDebt, earlyDrop },
      step: Object.freeze({ ...BUCKET_STEP, parameters: ({ interval }: MeterPolicy) => [interval, size, DEFAULT] }),
    } satisfies Algorithm)
  }
  const { duration, coldFactor } = parseWarmUp(warmUp)
  return Object.freeze({
    ...base,
    // A key's warmth depends on these numbers.
    id: `token-bucket-warming-up-${String(duration).replace('.', '-')}-${String(coldFactor).replace('.', '-')}`,
    fields: 3,
    local: (site, exchange) => new LocalWarmUp(site, exchange, duration, coldFactor),
    step: Object.freeze({
      ...WARM_UP_STEP,
      parameters: ({ interval }: MeterPolicy) => [interval, size, duration, coldFactor],
    }),
  } satisfies Algorithm)
}

function parseWarmUp(given: Duration | WarmUp): { readonly duration: number; readonly coldFactor: number } {
  if (typeof given !== 'object' || given === null) return { duration: parseDuration(given, 'warmUp', 1), coldFactor: 3 }
  checkNames('A warm-up', given, ['duration', 'coldFactor'], undefined, 'warmUp.')
  const { duration, coldFactor = 3 } = given
  if (typeof coldFactor !== 'number' || !(coldFactor > 1 && coldFactor <= 100)) {
    throw invalidOption('warmUp.coldFactor', coldFactor, 'a number greater than 1 and at most 100')
  }
  return { duration: parseDuration(duration, 'warmUp.duration', 1), coldFactor }
}
