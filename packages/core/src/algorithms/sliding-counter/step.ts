import { sumOf } from '../../store/units.ts'
import { ordinalAt } from '../../time/intervals.ts'
import type { MeterPolicy } from '../meter.ts'
import type { Step, Verdict } from '../step.ts'
import { slackOf, wholeMilliseconds } from '../whole-wait.ts'

/**
 * The weighted counter of two fixed windows: `previous · (1 − elapsed) + current`.
 *
 *     state       [units taken in the interval before, units taken in this one, its ordinal]
 *     parameters  [interval]
 */
export const SLIDING_COUNTER_STEP: Step = Object.freeze({
  id: 'sliding-counter',

  parameters: ({ interval }: MeterPolicy) => [interval],

  width: ([interval = 0]: readonly number[]) => interval,

  take(state: number[], now: number, cost: number, limit: number, [interval = 0]: readonly number[]): Verdict {
    const { previous, current, ordinal } = countsAt(state, now, interval)
    const end = (ordinal + 1) * interval
    const used = weighted(previous, current, Math.max(0, (end - now) / interval))
    const allowed = used + cost <= limit + slackOf(limit) && limit > 0
    if (allowed && cost > 0) write(state, previous, sumOf(current, cost), ordinal)
    const never = cost > limit || limit === 0
    const room = limit - cost + slackOf(limit) / 2
    const counted = allowed ? current + cost : current
    return {
      allowed,
      remaining: Math.max(0, limit - (allowed ? used + cost : used)),
      resetAfterMs: counted > 0 ? end + interval - now : previous > 0 ? Math.max(0, end - now) : 0,
      retryAfterMs: allowed ? 0 : never ? Number.POSITIVE_INFINITY : waitOf(previous, current, room, end, now, interval),
      delayMs: 0,
    }
  },

  add(state: number[], now: number, units: number, _limit: number, [interval = 0]: readonly number[]): void {
    const { previous, current, ordinal } = countsAt(state, now, interval)
    write(state, previous, sumOf(current, units), ordinal)
  },

  giveBack(state: number[], at: number, units: number, now: number, _limit: number, [interval = 0]: readonly number[]): void {
    const { previous, current, ordinal } = countsAt(state, now, interval)
    const taken = ordinalAt(at, interval)
    // Units taken by a clock that was ahead count in the running interval.
    if (taken >= ordinal) write(state, previous, Math.max(0, current - units), ordinal)
    else if (taken === ordinal - 1) write(state, Math.max(0, previous - units), current, ordinal)
  },

  lifetime(state: readonly number[], now: number, _limit: number, [interval = 0]: readonly number[]): number {
    const { previous, current, ordinal } = countsAt(state, now, interval)
    return current > 0 ? (ordinal + 2) * interval - now : previous > 0 ? (ordinal + 1) * interval - now : 0
  },
})

/** The counts at `now`. A process whose clock is a little behind counts in the interval that others already use. */
function countsAt(state: readonly number[], now: number, interval: number): { previous: number; current: number; ordinal: number } {
  const [before = 0, last = 0, lastOrdinal = Number.NEGATIVE_INFINITY] = state
  const here = ordinalAt(now, interval)
  const ordinal = lastOrdinal === here + 1 ? lastOrdinal : here
  if (lastOrdinal === ordinal) return { previous: before, current: last, ordinal }
  return { previous: lastOrdinal === ordinal - 1 ? last : 0, current: 0, ordinal }
}

function write(state: number[], previous: number, current: number, ordinal: number): void {
  state[0] = previous
  state[1] = current
  state[2] = ordinal
}

/**
 * previous · (1 − elapsed) + current
 *
 * @param ahead the part of the running interval that is still to come. Negative after its end
 */
export function weighted(previous: number, current: number, ahead: number): number {
  return ahead >= 0 ? previous * Math.min(1, ahead) + current : current * Math.max(0, 1 + ahead)
}

/**
 * The part of the running interval that is still to come when no more than `room` is used. The weighted sum falls as the previous interval
 * fades. If that is not enough, the running interval must fade after its end: then the part is negative.
 */
export function aheadOf(previous: number, current: number, room: number): number {
  return current <= room ? (room - current) / previous : room / current - 1
}

function waitOf(previous: number, current: number, room: number, end: number, now: number, interval: number): number {
  const after = wholeMilliseconds(end - aheadOf(previous, current, room) * interval - now)
  return weighted(previous, current, (end - now - after) / interval) <= room ? after : after + 1
}
