import { MOST_UNITS, sumOf } from '../../keys/units.ts'
import type { Step, Verdict } from '../step.ts'

/** Of a parameter: it is the limit, or, of what passes at once, everything. */
export const DEFAULT = -1

/** Quotients are rounded: a request that comes when it was told to must fit. Part of what a bucket holds. */
export const ROUNDING = 1e-10

/**
 * Units that a bucket holds at most.
 *
 * @param size `DEFAULT`: as many as the limit
 */
export function capacityOf(size: number, limit: number): number {
  return size === DEFAULT || limit === 0 || limit === Number.POSITIVE_INFINITY ? limit : size
}

/** How long a bucket takes to lose so many units, in milliseconds. At a limit of 0 it loses none: nobody waits for that. */
export function drainTime(units: number, limit: number, interval: number): number {
  return units > 0 && limit > 0 ? (units * interval) / limit : 0
}

/** Units that a bucket still holds after `elapsed` milliseconds. The product goes first: for whole numbers it is exact. */
export function drained(level: number, elapsed: number, limit: number, interval: number): number {
  if (limit === Number.POSITIVE_INFINITY) return 0
  return elapsed > 0 ? Math.max(0, level - (elapsed * limit) / interval) : level
}

/**
 * A bucket that requests fill and that loses `limit` units per interval, all the time: token buckets and leaky buckets (and the
 * GCRA) differ only in how they speak of it.
 *
 *     state       [units in it, when they were]
 *     parameters  [interval, units that it holds, units that pass without waiting]; each of the last two may be `DEFAULT`
 */
export const BUCKET_STEP: Omit<Step, 'parameters'> = Object.freeze({
  id: 'bucket',

  take(state: number[], now: number, cost: number, limit: number, parameters: readonly number[]): Verdict {
    const [interval = 0, size = DEFAULT] = parameters
    const capacity = capacityOf(size, limit)
    const level = levelOf(state, now, limit, interval)
    const room = capacity - level
    if (cost <= room + capacity * ROUNDING && limit > 0) {
      if (cost > 0) write(state, sumOf(level, cost), now)
      return verdict(true, sumOf(level, cost), 0, limit, parameters)
    }
    // A clock that has gone back must not close the bucket until it is where it was.
    if (cost > 0 && (state[1] ?? now) > now) write(state, level, now)
    const never = cost > capacity + capacity * ROUNDING || limit === 0
    const wait = never ? Number.POSITIVE_INFINITY : drainTime(cost - room - (capacity * ROUNDING) / 2, limit, interval)
    return verdict(false, level, wait, limit, parameters)
  },

  add(state: number[], now: number, units: number, limit: number, [interval = 0]: readonly number[]): void {
    write(state, sumOf(levelOf(state, now, limit, interval), units), now)
  },

  // What came in at `at` has run out when a whole bucket would have.
  giveBack(state: number[], at: number, units: number, now: number, limit: number, parameters: readonly number[]): void {
    const [interval = 0, size = DEFAULT] = parameters
    if (now - at >= drainTime(capacityOf(size, limit), limit, interval)) return
    write(state, Math.max(0, levelOf(state, now, limit, interval) - units), now)
  },

  ahead: ([interval = 0, , atOnce = DEFAULT]: readonly number[], most: number) => [interval, most, atOnce],

  lifetime(state: readonly number[], now: number, limit: number, [interval = 0]: readonly number[]): number {
    // A single request may have had no limit: what it counted stays for those that have one.
    if (limit === Number.POSITIVE_INFINITY) return (state[0] ?? 0) > 0 ? interval : 0
    return drainTime(levelOf(state, now, limit, interval), limit, interval)
  },
})

function levelOf(state: readonly number[], now: number, limit: number, interval: number): number {
  return drained(state[0] ?? 0, now - (state[1] ?? now), limit, interval)
}

function write(state: number[], level: number, now: number): void {
  state[0] = Math.min(MOST_UNITS, level)
  state[1] = now
}

function verdict(allowed: boolean, level: number, retryAfter: number, limit: number, parameters: readonly number[]): Verdict {
  const [interval = 0, size = DEFAULT, atOnce = DEFAULT] = parameters
  return {
    allowed,
    remaining: Math.max(0, capacityOf(size, limit) - level),
    resetAfter: drainTime(level, limit, interval),
    retryAfter,
    delay: allowed && atOnce !== DEFAULT ? drainTime(level - atOnce, limit, interval) : 0,
  }
}
