import { capacityOf, DEFAULT, drainTime, ROUNDING } from '../bucket/step.ts'
import type { Step, Verdict } from '../step.ts'

/**
 * What units cost a bucket that must warm up, as published with Guava's `SmoothWarmingUp` (google/guava,
 * `SmoothRateLimiter.java`): a key that rests saves permits up to a most. The more it has saved, the longer each of them takes, up
 * to `coldFactor` times as long as at full rate; once half of what the warm-up takes at full rate is left, they take as long as
 * ever.
 *
 *     threshold = 0.5 · warmUp / stable        stable = interval / limit, the time of a unit at full rate
 *     most      = threshold + 2 · warmUp / (stable + cold)        cold = coldFactor · stable
 *     slope     = (cold - stable) / (most - threshold)
 *     time      = the area under the line of (saved permits, time of a unit) between those before and those after
 *
 * How warm a key is, is kept as the part of the most that is *not* saved: 0 for a new key, which is cold, 1 at full rate. Times are
 * in units at full rate here, that is, parts of `stable`.
 *
 * @param warmth 0 to 1
 * @param units more than 0 for units that are taken, less for such that come back
 * @returns units that they take the time of; negative for such that come back
 */
export function warmUpTime(warmth: number, units: number, threshold: number, most: number, slope: number): number {
  const before = (1 - warmth) * most
  // Of units that come back the area is that of taking them once more.
  const high = units > 0 ? before : Math.min(most, before - units)
  const above = high - threshold
  const slow = Math.max(0, Math.min(units > 0 ? units : high - before, above))
  const more = (slow * slope * (2 * above - slow)) / 2
  return units > 0 ? units + more : units - more
}

/** The other way round: the units that take so long if the key is cold. */
export function unitsOf(time: number, threshold: number, most: number, slope: number): number {
  const above = most - threshold
  const beyond = time - above - (slope * above * above) / 2
  if (beyond >= 0) return above + beyond
  const first = 1 + slope * above
  return (first - Math.sqrt(Math.max(0, first * first - 2 * slope * time))) / slope
}

/** Permits that take no longer than at full rate, of those that a key may save. */
export function thresholdOf(limit: number, interval: number, warmUp: number): number {
  return (0.5 * warmUp * limit) / interval
}

/** Permits that a key saves at most. */
export function mostSaved(threshold: number, coldFactor: number): number {
  return threshold * (1 + 4 / (1 + coldFactor))
}

/** By how much longer a unit takes for each permit beyond the threshold, as a part of its time at full rate. */
export function slopeOf(threshold: number, coldFactor: number): number {
  return (coldFactor * coldFactor - 1) / (4 * threshold)
}

/** How warm a key is after units were taken, or have come back if they are negative. */
export function warmed(warmth: number, units: number, most: number): number {
  return Math.min(1, Math.max(0, warmth + units / most))
}

/**
 * A token bucket that must warm up. A request fits as into any bucket by its cost; what it fills it by is the time that its
 * units take, which is longer while the key is cold, so that the next one waits for it.
 *
 *     state       [milliseconds that are owed, when they were, how warm it was]
 *     parameters  [interval, burst (DEFAULT: the limit), warmUp, coldFactor]
 */
export const WARM_UP_STEP: Omit<Step, 'parameters'> = Object.freeze({
  id: 'bucket-warm-up',
  oneByOne: true,

  take(state: number[], now: number, cost: number, limit: number, parameters: readonly number[]): Verdict {
    const [interval = 0, size = DEFAULT] = parameters
    if (limit === Number.POSITIVE_INFINITY) return { allowed: true, remaining: limit, resetAfter: 0, retryAfter: 0, delay: 0 }
    const capacity = capacityOf(size, limit)
    const key = at(state, now, parameters)
    const room = capacity - (key.owed * limit) / interval
    if (cost <= room + capacity * ROUNDING && limit > 0) {
      if (cost > 0) fill(key, cost, limit, parameters)
      if (cost > 0) write(state, key, now)
      return { allowed: true, ...told(key.owed, limit, interval, capacity), retryAfter: 0, delay: 0 }
    }
    if (cost > 0 && (state[1] ?? now) > now) write(state, key, now)
    const never = cost > capacity + capacity * ROUNDING || limit === 0
    const wait = never ? Number.POSITIVE_INFINITY : drainTime(cost - room - (capacity * ROUNDING) / 2, limit, interval)
    return { allowed: false, ...told(key.owed, limit, interval, capacity), retryAfter: wait, delay: 0 }
  },

  add(state: number[], now: number, units: number, limit: number, parameters: readonly number[]): void {
    if (limit === Number.POSITIVE_INFINITY || limit === 0) return
    const key = at(state, now, parameters)
    fill(key, units, limit, parameters)
    write(state, key, now)
  },

  giveBack(state: number[], takenAt: number, units: number, now: number, limit: number, parameters: readonly number[]): void {
    const [interval = 0, size = DEFAULT] = parameters
    if (limit === Number.POSITIVE_INFINITY || now - takenAt >= drainTime(capacityOf(size, limit), limit, interval)) return
    const key = at(state, now, parameters)
    fill(key, -units, limit, parameters)
    write(state, key, now)
  },

  // Until it is cold again.
  lifetime(state: readonly number[], now: number, _limit: number, parameters: readonly number[]): number {
    const { owed, warmth } = at(state, now, parameters)
    return owed + warmth * (parameters[2] ?? 0)
  },
})

interface WarmKey {
  owed: number
  warmth: number
}

/** What a key owes now. The time that it rests cools it: from warm to cold it takes as long as to warm up. */
function at(state: readonly number[], now: number, [, , warmUp = 0]: readonly number[]): WarmKey {
  const [owed = 0, since = now, warmth = 0] = state
  const elapsed = Math.max(0, now - since)
  return { owed: Math.max(0, owed - elapsed), warmth: Math.max(0, warmth - Math.max(0, elapsed - owed) / warmUp) }
}

function fill(key: WarmKey, units: number, limit: number, [interval = 0, , warmUp = 0, coldFactor = 0]: readonly number[]): void {
  const threshold = thresholdOf(limit, interval, warmUp)
  const most = mostSaved(threshold, coldFactor)
  const time = warmUpTime(key.warmth, units, threshold, most, slopeOf(threshold, coldFactor))
  key.owed = Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, key.owed + (time * interval) / limit))
  key.warmth = warmed(key.warmth, units, most)
}

function write(state: number[], { owed, warmth }: WarmKey, now: number): void {
  state[0] = owed
  state[1] = now
  state[2] = warmth
}

function told(owed: number, limit: number, interval: number, capacity: number): Pick<Verdict, 'remaining' | 'resetAfter'> {
  return { remaining: Math.max(0, capacity - (owed * limit) / interval), resetAfter: owed }
}
