import { invalidOption } from '../../report/errors.ts'
import { checkAlgorithmOptions } from '../../report/names.ts'
import { MOST_UNITS } from '../../store/units.ts'
import type { Algorithm, AnyAlgorithm } from '../algorithm.ts'
import { LocalBucket } from '../bucket/meter.ts'
import { BUCKET_STEP, capacityOf, DEFAULT } from '../bucket/step.ts'
import { drainTime } from '../drain-time.ts'
import type { MeterPolicy } from '../meter.ts'

/** Options of `leakyBucket`. */
export interface LeakyBucketOptions {
  /**
   * Sets how many units above the pace may wait: at least 0. Requests beyond them are rejected.
   *
   * @default the policy's `limit` less 1
   */
  readonly burst?: number
  /**
   * Allows this part of the burst without waiting: 0 to `burst`.
   *
   * @default 0
   */
  readonly immediate?: number
}

/**
 * Requests leave evenly, at the pace of `limit / interval`. A request that comes too early must wait for `decision.delayMs`. A request for
 * which the bucket has no capacity is rejected. This is `limit_req` of nginx, with its `burst` as `burst` and its `delay` as `immediate`.
 * Its `nodelay` is `immediate: burst`.
 *
 * Middleware delays requests that must wait. Your own code waits with `throttler.waitFor(decision)`, or uses `acquire`. With coordination
 * `'background'` all processes keep the pace together: a waiting request gets a reservation from the store, and `checkAsync` waits for it.
 * A request may then cost at most `immediate` + 1.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * const algorithm = leakyBucket({ burst: 20 }) // with limit: 10, interval: '1s': one each 100 ms, and 20 more may wait
 */
export function leakyBucket(options: LeakyBucketOptions = {}): Algorithm {
  checkAlgorithmOptions('leakyBucket', options, ['burst', 'immediate'], '{ burst: 20 }')
  const { burst, immediate = 0 } = options
  if (burst !== undefined && !(typeof burst === 'number' && burst >= 0 && burst < MOST_UNITS)) {
    throw invalidOption('burst', burst, `a number from 0 to ${MOST_UNITS - 1}`)
  }
  if (!(typeof immediate === 'number' && immediate >= 0 && immediate <= (burst ?? MOST_UNITS))) {
    throw invalidOption('immediate', immediate, burst === undefined ? 'a number of at least 0' : `a number from 0 to "burst", ${burst}`)
  }
  // One unit leaves immediately. The others are the burst.
  const size = burst === undefined ? DEFAULT : burst + 1
  const most = (limit: number) => capacityOf(size, limit)
  const atOnce = immediate === burst ? DEFAULT : immediate + 1
  const base = {
    name: 'leakyBucket()',
    id: 'leaky-bucket',
    fields: 2,
    burst: (limit: number) => Math.max(0, most(limit) - 1),
    local: (site, exchange) => new LocalBucket(site, exchange),
    shape: { kind: 'bucket', coordinations: ['background'] },
  } satisfies AnyAlgorithm
  const step = Object.freeze({ ...BUCKET_STEP, parameters: ({ interval }: MeterPolicy) => [interval, size, atOnce] })
  const settings = (limit: number) => ({ burst: base.burst(limit), immediate: Math.min(immediate, base.burst(limit)) })
  if (atOnce === DEFAULT) return Object.freeze({ ...base, most, settings, step } satisfies Algorithm)
  const passing = (limit: number) => Math.min(most(limit), capacityOf(atOnce, limit))
  return Object.freeze({
    ...base,
    most,
    settings,
    step,
    delay: (remaining, limit, interval) => drainTime(most(limit) - remaining - atOnce, limit, interval),
    together: Object.freeze({
      ...base,
      most: passing,
      settings,
      // Waiting times are reported in whole milliseconds.
      holds: (limit, interval) =>
        limit === Number.POSITIVE_INFINITY ? 0 : Math.ceil(drainTime(most(limit) - passing(limit), limit, interval)),
    } satisfies AnyAlgorithm),
  } satisfies Algorithm)
}
