import { sumOf } from '../../store/units.ts'
import type { MeterPolicy } from '../meter.ts'
import type { Step, Verdict } from '../step.ts'

/** Times that a key may keep whatever its limit: for costs below one unit. */
const FEW_TIMES = 64

/** Sums of fractions are rounded, but a request that returns after `retryAfterMs` must fit. A part of the limit. */
export const ROUNDING = 1e-10

/**
 * Times that a key keeps at most. With costs of one unit and more, that is one for each request. With smaller costs or charges there may be
 * more: then the newest time takes further units in, which count a little longer.
 */
export function mostTimes(limit: number): number {
  return limit === Number.POSITIVE_INFINITY ? FEW_TIMES : Math.max(FEW_TIMES, Math.ceil(limit))
}

/**
 * At most the limit in any stretch of an interval's length: (now - interval, now].
 *
 *     state       [time, units, time, units, …], the oldest first
 *     parameters  [interval]
 */
export const SLIDING_LOG_STEP: Step = Object.freeze({
  id: 'sliding-log',

  parameters: ({ interval }: MeterPolicy) => [interval],

  take(state: number[], now: number, cost: number, limit: number, [interval = 0]: readonly number[]): Verdict {
    const log = cost > 0 ? state : [...state]
    trim(log, now, interval)
    const used = sum(log)
    const allowed = cost <= limit - used + limit * ROUNDING && limit > 0
    if (allowed && cost > 0) count(log, now, cost, limit)
    return {
      allowed,
      remaining: Math.max(0, limit - (allowed ? used + cost : used)),
      resetAfterMs: untilEmpty(log, now, interval),
      retryAfterMs: allowed ? 0 : waitOf(log, now, used + cost - limit - (limit * ROUNDING) / 2, interval),
      delayMs: 0,
    }
  },

  add(state: number[], now: number, units: number, limit: number, [interval = 0]: readonly number[]): void {
    trim(state, now, interval)
    count(state, now, units, limit)
  },

  giveBack(state: number[], at: number, units: number, now: number, _limit: number, [interval = 0]: readonly number[]): void {
    if (now - at >= interval) return
    trim(state, now, interval)
    let left = units
    let place = 0
    while (place < state.length && (state[place] as number) < at) place += 2
    while (place < state.length && left > 0) {
      const back = Math.min(left, state[place + 1] as number)
      left -= back
      state[place + 1] = (state[place + 1] as number) - back
      if (state[place + 1] === 0) state.splice(place, 2)
      else place += 2
    }
  },

  lifetime(state: readonly number[], now: number, _limit: number, [interval = 0]: readonly number[]): number {
    return Math.max(0, untilEmpty(state, now, interval))
  },
})

/** Removes times that have left the interval. Times in the future, from before a clock was set back, become `now`. */
function trim(log: number[], now: number, interval: number): void {
  let gone = 0
  while (gone < log.length && now - (log[gone] as number) >= interval) gone += 2
  if (gone > 0) log.splice(0, gone)
  for (let place = log.length - 2; place >= 0 && (log[place] as number) > now; place -= 2) log[place] = now
}

function sum(log: readonly number[]): number {
  let units = 0
  for (let place = 1; place < log.length; place += 2) units = sumOf(units, log[place] as number)
  return units
}

function count(log: number[], now: number, units: number, limit: number): void {
  const last = log.length - 2
  if (last >= 0 && (log[last] === now || log.length >= 2 * mostTimes(limit))) {
    log[last] = now
    log[last + 1] = sumOf(log[last + 1] as number, units)
  } else log.push(now, units)
}

function untilEmpty(log: readonly number[], now: number, interval: number): number {
  return log.length === 0 ? 0 : (log.at(-2) as number) + interval - now
}

/** Until `excess` units have left. */
function waitOf(log: readonly number[], now: number, excess: number, interval: number): number {
  let units = 0
  for (let place = 0; place < log.length; place += 2) {
    units = sumOf(units, log[place + 1] as number)
    if (units >= excess) return (log[place] as number) + interval - now
  }
  return Number.POSITIVE_INFINITY
}
