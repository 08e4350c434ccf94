import { sumOf } from '../../store/units.ts'
import type { MeterPolicy } from '../meter.ts'
import type { Step, Verdict } from '../step.ts'

/**
 * At most the limit in each window, which begins with a key's first request and lasts one interval. A window ends early if all its units
 * come back.
 *
 *     state       [units taken, when the window began]
 *     parameters  [interval]
 */
export const FIRST_REQUEST_STEP: Step = Object.freeze({
  id: 'fixed-window-first-request',

  sinceStart: true,

  parameters: ({ interval }: MeterPolicy) => [interval],

  take(state: number[], now: number, cost: number, limit: number, [interval = 0]: readonly number[]): Verdict {
    const used = usedAt(state, now, interval)
    const allowed = cost <= limit - used && limit > 0
    if (cost > 0) startBy(state, now)
    if (allowed && cost > 0) count(state, now, used, cost)
    const after = allowed ? used + cost : used
    // The running window, or a window that would begin now.
    const left = used > 0 ? interval - Math.max(0, now - (state[1] as number)) : interval
    return {
      allowed,
      remaining: Math.max(0, limit - after),
      resetAfterMs: after > 0 ? left : 0,
      retryAfterMs: allowed ? 0 : cost > limit || limit === 0 ? Number.POSITIVE_INFINITY : left,
      delayMs: 0,
    }
  },

  add(state: number[], now: number, units: number, _limit: number, [interval = 0]: readonly number[]): void {
    startBy(state, now)
    count(state, now, usedAt(state, now, interval), units)
  },

  giveBack(state: number[], at: number, units: number, now: number, _limit: number, [interval = 0]: readonly number[]): void {
    const used = usedAt(state, now, interval)
    if (used > 0 && at >= Math.floor(state[1] as number)) state[0] = Math.max(0, used - units)
  },

  lifetime(state: readonly number[], now: number, _limit: number, [interval = 0]: readonly number[]): number {
    return usedAt(state, now, interval) > 0 ? interval - Math.max(0, now - (state[1] as number)) : 0
  },
})

/** Units taken in the window that runs at `now`. 0 without one. */
function usedAt(state: readonly number[], now: number, interval: number): number {
  return now - (state[1] ?? now) < interval ? (state[0] ?? 0) : 0
}

/** If a clock is set back to before the window's beginning, the window must not become longer. */
function startBy(state: number[], now: number): void {
  if ((state[1] ?? now) > now) state[1] = now
}

function count(state: number[], now: number, used: number, units: number): void {
  if (used === 0) state[1] = now
  state[0] = sumOf(used, units)
}
