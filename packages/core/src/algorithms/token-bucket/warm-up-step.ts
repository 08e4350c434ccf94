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
 * How warm a key is, is kept as the part of the most that is *not* saved: 0 for a new key, which is cold, 1 at full rate.
 *
 * @param warmth 0 to 1
 * @param units more than 0 for units that are taken, less for such that come back
 * @returns milliseconds that the units take; negative for such that come back
 */
export function warmUpTime(warmth: number, units: number, stable: number, warmUp: number, coldFactor: number): number {
  const threshold = (0.5 * warmUp) / stable
  const most = mostSaved(stable, warmUp, coldFactor)
  const before = (1 - warmth) * most
  const after = Math.min(most, Math.max(0, before - units))
  const high = Math.max(before, after)
  const low = Math.min(before, after)
  const above = Math.max(0, high - threshold)
  const below = Math.max(0, low - threshold)
  const slope = ((coldFactor - 1) * stable) / (most - threshold)
  const steep = (above - below) * (stable + (slope * (above + below)) / 2)
  // The rest, saved or not, takes as long as ever.
  const rest = (Math.abs(units) - (above - below)) * stable
  return units > 0 ? steep + rest : -(steep + rest)
}

/** Permits that a key saves at most. */
export function mostSaved(stable: number, warmUp: number, coldFactor: number): number {
  return (0.5 * warmUp) / stable + (2 * warmUp) / (stable + coldFactor * stable)
}

/** How warm a key is after units were taken, or have come back if they are negative. */
export function warmed(warmth: number, units: number, stable: number, warmUp: number, coldFactor: number): number {
  return Math.min(1, Math.max(0, warmth + units / mostSaved(stable, warmUp, coldFactor)))
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
  const stable = interval / limit
  const time = warmUpTime(key.warmth, units, stable, warmUp, coldFactor)
  key.owed = Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, key.owed + time))
  key.warmth = warmed(key.warmth, units, stable, warmUp, coldFactor)
}

function write(state: number[], { owed, warmth }: WarmKey, now: number): void {
  state[0] = owed
  state[1] = now
  state[2] = warmth
}

function told(owed: number, limit: number, interval: number, capacity: number): Pick<Verdict, 'remaining' | 'resetAfter'> {
  return { remaining: Math.max(0, capacity - (owed * limit) / interval), resetAfter: owed }
}
