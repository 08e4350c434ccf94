import { capacityOf, DEFAULT, drained, inForce, isPace, paceOf, ROUNDING } from '../bucket/step.ts'
import { drainTime } from '../drain-time.ts'
import type { Step, Verdict } from '../step.ts'

/**
 * The cost of units in a bucket that must warm up, as published with Guava's `SmoothWarmingUp` (google/guava, `SmoothRateLimiter.java`): a
 * key that rests saves permits up to a maximum. The more it has saved, the longer each of them takes, up to `coldFactor` times as long as
 * at full rate. Once only half of the permits that the warm-up gives at full rate are left, they take no longer.
 *
 *     threshold = 0.5 · warmUp / stable        stable = interval / limit, the time of a unit at full rate
 *     most      = threshold + 2 · warmUp / (stable + cold)        cold = coldFactor · stable
 *     slope     = (cold - stable) / (most - threshold)
 *     time      = the area under the line of (saved permits, time of a unit) between those before and those after
 *
 * The warmth of a key is the part of the maximum that is *not* saved: 0 for a new key, which is cold, 1 at full rate. Times are in units at
 * full rate here, that is, parts of `stable`.
 *
 * @param warmth 0 to 1
 * @param units positive for units that are taken, negative for units that are returned
 * @returns the units whose time they take. Negative for returned units
 */
function warmUpTime(warmth: number, units: number, threshold: number, most: number, slope: number): number {
  const before = (1 - warmth) * most
  // Returned units give back the area that taking them again would cost.
  const high = units > 0 ? before : Math.min(most, before - units)
  const above = high - threshold
  const slow = Math.max(0, Math.min(units > 0 ? units : high - before, above))
  const more = (slow * slope * (2 * above - slow)) / 2
  return units > 0 ? units + more : units - more
}

/** The inverse: the units that take so long if the key is cold. */
export function unitsOf(time: number, threshold: number, most: number, slope: number): number {
  const above = most - threshold
  const beyond = time - above - (slope * above * above) / 2
  if (beyond >= 0) return above + beyond
  const first = 1 + slope * above
  return (first - Math.sqrt(Math.max(0, first * first - 2 * slope * time))) / slope
}

/** The part of the saved permits that take no longer than at full rate. */
function thresholdOf(limit: number, interval: number, warmUp: number): number {
  return (0.5 * warmUp * limit) / interval
}

/** Permits that a key saves at most. */
function mostSaved(threshold: number, coldFactor: number): number {
  return threshold * (1 + 4 / (1 + coldFactor))
}

/** By how much longer a unit takes for each permit beyond the threshold, as a part of its time at full rate. */
function slopeOf(threshold: number, coldFactor: number): number {
  return (coldFactor * coldFactor - 1) / (4 * threshold)
}

/** The warmth of a key after units were taken, or returned if they are negative. */
function warmed(warmth: number, units: number, most: number): number {
  return Math.min(1, Math.max(0, warmth + units / most))
}

/** The numbers of a warm-up at a limit. A limit that is no pace (0, `Infinity`) has none. */
interface Shape {
  readonly threshold: number
  readonly most: number
  readonly slope: number
}

export function shapeOf(limit: number, interval: number, warmUp: number, coldFactor: number): Shape {
  const threshold = thresholdOf(limit, interval, warmUp)
  return { threshold, most: mostSaved(threshold, coldFactor), slope: slopeOf(threshold, coldFactor) }
}

/** The level of a key's bucket, and its warmth. */
export interface WarmKey {
  /** In units. */
  level: number
  warmth: number
}

/** Lets a key rest. Only time without debt cools it: from warm to cold takes as long as the warm-up. */
export function rest(key: WarmKey, elapsed: number, pace: number, interval: number, warmUp: number): void {
  if (!(elapsed > 0)) return
  const owed = pace > 0 ? drainTime(key.level, pace, interval) : key.level > 0 ? Number.POSITIVE_INFINITY : 0
  key.warmth = Math.max(0, key.warmth - Math.max(0, elapsed - owed) / warmUp)
  key.level = drained(key.level, elapsed, pace, interval)
}

/**
 * Counts units of a key, or returns them if they are negative. The limit of a single request must not change their cost for other requests,
 * so they cost as much as at the limit in force, which is the request's own if the bucket is empty.
 *
 * @param most units in its bucket up to which a request without a limit fills it
 */
export function heat(
  key: WarmKey,
  units: number,
  limit: number,
  pace: number,
  most: number,
  interval: number,
  warmUp: number,
  coldFactor: number,
): void {
  const by = isPace(limit) && (key.level === 0 || !isPace(pace)) ? limit : pace
  let time = units
  if (isPace(by)) {
    const shape = shapeOf(by, interval, warmUp, coldFactor)
    time = warmUpTime(key.warmth, units, shape.threshold, shape.most, shape.slope)
    key.warmth = warmed(key.warmth, units, shape.most)
  }
  if (units > 0 && limit === Number.POSITIVE_INFINITY) time = Math.max(0, Math.min(time, most - key.level))
  key.level = Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, key.level + time))
}

/**
 * A token bucket that must warm up. A request fits by its cost, as in any bucket. But it fills the bucket by the time that its units take,
 * which is longer while the key is cold, so the next request waits for it.
 *
 *     state       [units owed, their time, how warm the key was, and `own` as in `BUCKET_STEP`]
 *     parameters  [interval, burst (DEFAULT: the limit), warmUp, coldFactor, usual limit]; the last is left out if it is the request's
 */
export const WARM_UP_STEP: Omit<Step, 'parameters'> = Object.freeze({
  id: 'bucket-warm-up',
  oneByOne: true,
  paced: true,

  take(state: number[], now: number, cost: number, limit: number, parameters: readonly number[]): Verdict {
    const [interval = 0, size = DEFAULT, , , usual = limit] = parameters
    const capacity = capacityOf(size, limit)
    const pace = paceOf(state[3], limit, usual)
    const key = at(state, now, pace, parameters)
    const before = key.level
    const room = capacity - before
    if (cost <= room + capacity * ROUNDING && limit > 0) {
      if (cost > 0) {
        fill(key, cost, limit, pace, parameters)
        write(state, key, now)
        note(state, before, limit, usual)
      }
      return { allowed: true, ...told(key.level, limit, usual, interval, capacity), retryAfterMs: 0, delayMs: 0 }
    }
    if (cost > 0 && (state[1] ?? now) > now) write(state, key, now)
    const never = cost > capacity + capacity * ROUNDING || limit === 0
    const wait = never ? Number.POSITIVE_INFINITY : drainTime(cost - room - (capacity * ROUNDING) / 2, pace, interval)
    return { allowed: false, ...told(key.level, limit, usual, interval, capacity), retryAfterMs: wait, delayMs: 0 }
  },

  add(state: number[], now: number, units: number, limit: number, parameters: readonly number[]): void {
    const [, , , , usual = limit] = parameters
    const pace = paceOf(state[3], limit, usual)
    const key = at(state, now, pace, parameters)
    const before = key.level
    fill(key, units, limit, pace, parameters)
    write(state, key, now)
    note(state, before, limit, usual)
  },

  giveBack(state: number[], takenAt: number, units: number, now: number, limit: number, parameters: readonly number[]): void {
    const [interval = 0, size = DEFAULT, , , usual = limit] = parameters
    const pace = paceOf(state[3], limit, usual)
    if (now - takenAt >= drainTime(capacityOf(size, limit === Number.POSITIVE_INFINITY ? usual : limit), pace, interval)) return
    const key = at(state, now, pace, parameters)
    fill(key, -units, limit, pace, parameters)
    write(state, key, now)
  },

  // Until the key is cold again.
  lifetime(state: readonly number[], now: number, limit: number, parameters: readonly number[]): number {
    const [interval = 0, , warmUp = 0, , usual = limit] = parameters
    const pace = Math.min(usual, paceOf(state[3], limit, usual))
    const { level, warmth } = at(state, now, pace, parameters)
    return drainTime(level, pace, interval) + warmth * warmUp
  },
})

/** The state of a key now. */
function at(state: readonly number[], now: number, pace: number, [interval = 0, , warmUp = 0]: readonly number[]): WarmKey {
  const [level = 0, since = now, warmth = 0] = state
  const key = { level, warmth }
  rest(key, now - since, pace, interval, warmUp)
  return key
}

function fill(
  key: WarmKey,
  units: number,
  limit: number,
  pace: number,
  [interval = 0, size = DEFAULT, warmUp = 0, coldFactor = 0, usual = limit]: readonly number[],
): void {
  heat(key, units, limit, pace, Math.max(usual, capacityOf(size, usual)), interval, warmUp, coldFactor)
}

function write(state: number[], { level, warmth }: WarmKey, now: number): void {
  state[0] = level
  state[1] = now
  state[2] = warmth
}

function note(state: number[], before: number, limit: number, usual: number): void {
  const own = inForce(state[3], before, limit, usual)
  if (own === undefined) state.length = 3
  else state[3] = own
}

function told(
  level: number,
  limit: number,
  usual: number,
  interval: number,
  capacity: number,
): Pick<Verdict, 'remaining' | 'resetAfterMs'> {
  return { remaining: Math.max(0, capacity - level), resetAfterMs: drainTime(level, isPace(limit) ? limit : usual, interval) }
}
