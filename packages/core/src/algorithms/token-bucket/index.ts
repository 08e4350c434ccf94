import { MOST_UNITS } from '../../keys/units.ts'
import { type Duration, parseDuration } from '../../options/duration.ts'
import { checkAlgorithmOptions, checkNames } from '../../options/names.ts'
import { invalidOption } from '../../report/errors.ts'
import type { Algorithm } from '../algorithm.ts'
import { BACKGROUND_BUCKET } from '../bucket/later.ts'
import { LocalBucket } from '../bucket/meter.ts'
import { BUCKET_STEP, capacityOf, DEFAULT } from '../bucket/step.ts'
import type { MeterPolicy } from '../meter.ts'
import { LocalWarmUp } from './warm-up-meter.ts'
import { WARM_UP_STEP } from './warm-up-step.ts'

/** How much may come at once, and how a key that has rested gets there. */
export interface TokenBucketOptions {
  /** Tokens that a key saves at most, and so units that may pass at once; at least 1. Default: the policy's limit. */
  readonly burst?: number
  /**
   * After rest a key's tokens come slower, and as fast as ever only after it has been in use for so long; resting for so long
   * makes it cold again. Default: they always come at the limit's pace.
   */
  readonly warmUp?: Duration | WarmUp
  /**
   * With coordination `'background'`: units beyond `burst` that a key pays back at most, at least 0. What a cluster with far-away nodes
   * allows too much in a flood closes the key until it has run out; with this not for longer than these and the burst take. But what is
   * forgotten is allowed: below the burst the limit may not hold in the long run. Default: all of it is paid back.
   */
  readonly maxDebt?: number
  /**
   * With coordination `'background'`: while more is asked for than the limit's pace, requests to a key that is nearly full are let in by
   * chance, as many as keep it four fifths full. Then it does not close, and nothing is allowed too much, however far the nodes are
   * from the store. It is an estimate: of bursts that just fit a few requests may be rejected. Default `false`.
   */
  readonly earlyDrop?: boolean
}

/** How a token bucket warms up. */
export interface WarmUp {
  /** From cold to full speed, and back; at least 1 ms. */
  readonly duration: Duration
  /** How much slower a cold key's tokens come: more than 1, at most 100. Default 3. */
  readonly coldFactor?: number
}

/**
 * Tokens come at the pace of `limit / interval`, all the time; a key saves `burst` of them at most, and each unit takes one. Smooth
 * where a window lets everything pass at its beginning. What `charge` counts beyond the tokens that are left is a debt.
 *
 * Of a bucket that warms up (as Guava's `SmoothWarmingUp`) a unit takes more than one token while the key is cold, and the next
 * request pays for that. `burst: 1` allows exactly what Guava's `tryAcquire` does.
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
    throw invalidOption(name, value, 'left out beside "warmUp", which does not count in the background')
  }
  const size = burst ?? DEFAULT
  const most = (limit: number) => capacityOf(size, limit)
  const settings = (limit: number) => ({
    burst: most(limit),
    ...(maxDebt !== undefined && { maxDebt }),
    ...(earlyDrop && { earlyDrop: 1 }),
  })
  const shape = { name: 'tokenBucket()', most, burst: most, settings }
  if (warmUp === undefined) {
    return Object.freeze({
      ...shape,
      id: 'token-bucket',
      fields: 2,
      local: (site, exchange) => new LocalBucket(site, exchange),
      background: BACKGROUND_BUCKET({ maxDebt, earlyDrop }),
      step: Object.freeze({ ...BUCKET_STEP, parameters: ({ interval }: MeterPolicy) => [interval, size, DEFAULT] }),
    } satisfies Algorithm)
  }
  const { duration, coldFactor } = parseWarmUp(warmUp)
  return Object.freeze({
    ...shape,
    // A key's warmth depends on these numbers..
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
