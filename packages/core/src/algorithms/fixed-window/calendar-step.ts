import type { AtomicStep, Verdict } from '../../store/step.ts'
import { sumOf } from '../../store/units.ts'

/**
 * At most the limit in each interval of a calendar. Only the process has the calendar, not the store.
 *
 *     state       [units taken, when the interval began, when it ends]
 *     parameters  [end, begin] of the process's interval; all times in milliseconds since the Unix epoch
 */
export const CALENDAR_STEP: AtomicStep = Object.freeze({
  id: 'calendar',

  take(state: number[], now: number, cost: number, limit: number, parameters: readonly number[]): Verdict {
    const [begin, end] = runningIn(state, parameters)
    const used = usedIn(state, begin)
    const allowed = used + cost <= limit && limit > 0
    if (allowed && cost > 0) write(state, sumOf(used, cost), begin, end)
    const left = Math.max(0, end - now)
    return {
      allowed,
      remaining: Math.max(0, limit - (allowed ? used + cost : used)),
      resetAfterMs: left,
      retryAfterMs: allowed ? 0 : cost > limit || limit === 0 ? Number.POSITIVE_INFINITY : left,
      delayMs: 0,
    }
  },

  add(state: number[], _now: number, units: number, _limit: number, parameters: readonly number[]): void {
    const [begin, end] = runningIn(state, parameters)
    write(state, sumOf(usedIn(state, begin), units), begin, end)
  },

  giveBack(state: number[], _at: number, units: number, _now: number, _limit: number, [end = 0, begin = 0]: readonly number[]): void {
    if (state[1] === begin) write(state, Math.max(0, usedIn(state, begin) - units), begin, end)
  },

  lifetime(state: readonly number[], now: number): number {
    return (state[0] ?? 0) > 0 ? Math.max(0, (state[2] as number) - now) : 0
  },
})

/** The running interval. A process whose clock is a little behind counts in the interval that others already use. */
function runningIn(
  [, begun = Number.NEGATIVE_INFINITY, ends = 0]: readonly number[],
  [end = 0, begin = 0]: readonly number[],
): [number, number] {
  return begun > begin ? [begun, ends] : [begin, end]
}

/** Units taken in an interval. */
function usedIn(state: readonly number[], begin: number): number {
  return state[1] === begin ? (state[0] ?? 0) : 0
}

function write(state: number[], units: number, begin: number, end: number): void {
  state[0] = units
  state[1] = begin
  state[2] = end
}
