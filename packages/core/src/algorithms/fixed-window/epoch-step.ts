import { sumOf } from '../../store/units.ts'
import { ordinalAt } from '../../time/intervals.ts'
import type { MeterPolicy } from '../meter.ts'
import type { Step, Verdict } from '../step.ts'

/**
 * At most the limit in each interval of the Unix epoch.
 *
 *     state       [units taken, the interval's ordinal]
 *     parameters  [interval]
 */
export const EPOCH_STEP: Step = Object.freeze({
  id: 'fixed-window',

  parameters: ({ interval }: MeterPolicy) => [interval],

  width: ([interval = 0]: readonly number[]) => interval,

  take(state: number[], now: number, cost: number, limit: number, [interval = 0]: readonly number[]): Verdict {
    const ordinal = ordinalIn(state, now, interval)
    const used = usedIn(state, ordinal)
    const allowed = used + cost <= limit && limit > 0
    if (allowed && cost > 0) write(state, sumOf(used, cost), ordinal)
    const left = (ordinal + 1) * interval - now
    return {
      allowed,
      remaining: Math.max(0, limit - (allowed ? used + cost : used)),
      resetAfterMs: left,
      retryAfterMs: allowed ? 0 : cost > limit || limit === 0 ? Number.POSITIVE_INFINITY : left,
      delayMs: 0,
    }
  },

  add(state: number[], now: number, units: number, _limit: number, [interval = 0]: readonly number[]): void {
    const ordinal = ordinalIn(state, now, interval)
    write(state, sumOf(usedIn(state, ordinal), units), ordinal)
  },

  giveBack(state: number[], at: number, units: number, _now: number, _limit: number, [interval = 0]: readonly number[]): void {
    const ordinal = ordinalAt(at, interval)
    if (ordinal === state[1]) write(state, Math.max(0, usedIn(state, ordinal) - units), ordinal)
  },

  lifetime(state: readonly number[], now: number, _limit: number, [interval = 0]: readonly number[]): number {
    return (state[0] ?? 0) > 0 ? Math.max(0, ((state[1] as number) + 1) * interval - now) : 0
  },
})

/** The interval at `now`. A process whose clock is a little behind counts in the interval that others already use. */
function ordinalIn(state: readonly number[], now: number, interval: number): number {
  const ordinal = ordinalAt(now, interval)
  return state[1] === ordinal + 1 ? state[1] : ordinal
}

/** Units taken in an interval. */
function usedIn(state: readonly number[], ordinal: number): number {
  return state[1] === ordinal ? (state[0] ?? 0) : 0
}

function write(state: number[], units: number, ordinal: number): void {
  state[0] = units
  state[1] = ordinal
}
