import { MOST_UNITS, sumOf } from '../../store/units.ts'
import { drainTime } from '../drain-time.ts'
import type { Step, Verdict } from '../step.ts'

/** A parameter that is left out: a bucket is as large as the limit, and all its units pass without waiting. */
export const DEFAULT = -1

/** Quotients are rounded, but a request that returns after `retryAfterMs` must fit. A part of the capacity. */
export const ROUNDING = 1e-10

/**
 * Units that fit into a bucket.
 *
 * @param size `DEFAULT`: as many as the limit
 */
export function capacityOf(size: number, limit: number): number {
  return size === DEFAULT || limit === 0 || limit === Number.POSITIVE_INFINITY ? limit : size
}

/**
 * Units by which a request fills a bucket. A request without a limit fills it only up to its capacity, or to the units that drain in an
 * interval, because nothing else would bound the debt.
 */
export function filling(units: number, level: number, limit: number, capacity: number, usual: number): number {
  return limit === Number.POSITIVE_INFINITY ? Math.max(0, Math.min(units, Math.max(capacity, usual) - level)) : units
}

/*
 * The limit of a single request must not change a bucket's level for the other requests. So a bucket drains at the limit of requests only
 * if several in a row brought one, or if it was empty before. Otherwise it drains at the key's usual limit.
 */

/**
 * The limit at which a bucket has drained until a request comes.
 *
 * @param own the limit that earlier requests brought. Negative as long as it does not count, undefined for none
 */
export function paceOf(own: number | undefined, limit: number, usual: number): number {
  if (own === undefined || own < 0 || !isPace(limit)) return usual
  // The median of the three: among the limits of requests, the one nearest to the usual limit.
  const least = Math.min(own, limit)
  return Math.max(least, Math.min(Math.max(own, limit), usual))
}

/**
 * `own` after a request.
 *
 * @param level units in the bucket before it
 */
export function inForce(own: number | undefined, level: number, limit: number, usual: number): number | undefined {
  if (limit === usual || !isPace(limit)) return undefined
  return own !== undefined || level === 0 ? limit : -limit
}

/** Whether a bucket drains at this limit, but not immediately. */
export function isPace(limit: number): boolean {
  return limit > 0 && limit < Number.POSITIVE_INFINITY
}

/** Units left in a bucket after `elapsed` milliseconds. The product comes first: for whole numbers it is exact. */
export function drained(level: number, elapsed: number, limit: number, interval: number): number {
  if (limit === Number.POSITIVE_INFINITY) return 0
  return elapsed > 0 ? Math.max(0, level - (elapsed * limit) / interval) : level
}

/**
 * A bucket that requests fill and that loses `limit` units per interval, all the time. Token buckets, leaky buckets and the GCRA differ
 * only in how they describe it.
 *
 *     state       [units in it, their time, and `own` if a request brought another limit than the usual one]
 *     parameters  [interval, capacity, units that pass without waiting, usual limit]; the second and the third may be `DEFAULT`.
 *                 The last is left out if it is the request's limit
 */
export const BUCKET_STEP: Omit<Step, 'parameters'> = Object.freeze({
  id: 'bucket',

  paced: true,

  take(state: number[], now: number, cost: number, limit: number, parameters: readonly number[]): Verdict {
    const [interval = 0, size = DEFAULT, , usual = limit] = parameters
    const capacity = capacityOf(size, limit)
    const pace = paceOf(state[2], limit, usual)
    const level = levelOf(state, now, pace, interval)
    const room = capacity - level
    if (cost <= room + capacity * ROUNDING && limit > 0) {
      const filled = sumOf(level, filling(cost, level, limit, capacityOf(size, usual), usual))
      if (cost > 0) {
        write(state, filled, now)
        note(state, level, limit, usual)
      }
      return verdict(true, filled, 0, limit, parameters)
    }
    // If a clock is set back, the bucket must not stay closed until that clock has caught up.
    if (cost > 0 && (state[1] ?? now) > now) write(state, level, now)
    const never = cost > capacity + capacity * ROUNDING || limit === 0
    const wait = never ? Number.POSITIVE_INFINITY : drainTime(cost - room - (capacity * ROUNDING) / 2, pace, interval)
    return verdict(false, level, wait, limit, parameters)
  },

  add(
    state: number[],
    now: number,
    units: number,
    limit: number,
    [interval = 0, size = DEFAULT, , usual = limit]: readonly number[],
  ): void {
    const level = levelOf(state, now, paceOf(state[2], limit, usual), interval)
    write(state, sumOf(level, filling(units, level, limit, capacityOf(size, usual), usual)), now)
    note(state, level, limit, usual)
  },

  // Units taken at `at` have drained after the time in which a full bucket drains: then none come back.
  giveBack(state: number[], at: number, units: number, now: number, limit: number, parameters: readonly number[]): void {
    const [interval = 0, size = DEFAULT, , usual = limit] = parameters
    const pace = paceOf(state[2], limit, usual)
    if (now - at >= drainTime(capacityOf(size, limit === Number.POSITIVE_INFINITY ? usual : limit), pace, interval)) return
    write(state, Math.max(0, levelOf(state, now, pace, interval) - units), now)
  },

  ahead: ([interval = 0, , atOnce = DEFAULT, ...usual]: readonly number[], most: number) => [interval, most, atOnce, ...usual],

  lifetime(state: readonly number[], now: number, limit: number, [interval = 0, , , usual = limit]: readonly number[]): number {
    const pace = Math.min(usual, paceOf(state[2], limit, usual))
    // A single request may have had no limit: its units still count for requests that have one.
    if (pace === Number.POSITIVE_INFINITY) return (state[0] ?? 0) > 0 ? interval : 0
    return drainTime(levelOf(state, now, pace, interval), pace, interval)
  },
})

function levelOf(state: readonly number[], now: number, limit: number, interval: number): number {
  return drained(state[0] ?? 0, now - (state[1] ?? now), limit, interval)
}

function write(state: number[], level: number, now: number): void {
  state[0] = Math.min(MOST_UNITS, level)
  state[1] = now
}

function note(state: number[], level: number, limit: number, usual: number): void {
  const own = inForce(state[2], level, limit, usual)
  if (own === undefined) state.length = 2
  else state[2] = own
}

function verdict(allowed: boolean, level: number, retryAfterMs: number, limit: number, parameters: readonly number[]): Verdict {
  const [interval = 0, size = DEFAULT, atOnce = DEFAULT, usual = limit] = parameters
  const pace = isPace(limit) ? limit : usual
  return {
    allowed,
    remaining: Math.max(0, capacityOf(size, limit) - level),
    resetAfterMs: drainTime(level, pace, interval),
    retryAfterMs,
    delayMs: allowed && atOnce !== DEFAULT ? drainTime(level - atOnce, pace, interval) : 0,
  }
}
