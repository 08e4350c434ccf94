import { sumOf } from '../../store/units.ts'
import { type Ordinal, ordinalAt } from '../../time/intervals.ts'
import type { MeterPolicy } from '../meter.ts'
import { EARLY } from '../roll.ts'
import type { Step, Verdict } from '../step.ts'
import { slackOf, wholeWait } from '../whole-wait.ts'
import { EARLY_RELEASE } from './cells.ts'

/**
 * A window of sub-windows. While the oldest one leaves, a small part of the limit is released of it. The rest counts until it has left.
 *
 *     state       [the running sub-window's ordinal, units in it, in the one before, … in the B-th before]
 *     parameters  [interval, B: subWindows of an interval]
 *
 * @param subWindows of an interval
 */
export function slidingWindowStep(subWindows: number): Step {
  return Object.freeze({
    id: 'sliding-window',

    parameters: ({ interval }: MeterPolicy) => [interval, subWindows],

    width: ([interval = 0]: readonly number[]) => interval / subWindows,

    take(state: number[], now: number, cost: number, limit: number, [interval = 0]: readonly number[]): Verdict {
      const width = interval / subWindows
      const cells = cellsAt(state, now, width, subWindows)
      const units = sumIn(cells)
      const used = units - releasedOf(cells, now, limit, width)
      const allowed = used + cost <= limit + slackOf(limit) && limit > 0
      if (allowed && cost > 0) {
        cells[1] = sumOf(cells[1] as number, cost)
        write(state, cells)
      }
      const never = cost > limit || limit === 0
      return {
        allowed,
        remaining: Math.max(0, limit - (allowed ? used + cost : used)),
        resetAfterMs: resetOf(cells, now, width, subWindows),
        retryAfterMs: allowed ? 0 : never ? Number.POSITIVE_INFINITY : waitOf(cells, units, cost, limit, now, width),
        delayMs: 0,
      }
    },

    add(state: number[], now: number, units: number, _limit: number, [interval = 0]: readonly number[]): void {
      const cells = cellsAt(state, now, interval / subWindows, subWindows)
      cells[1] = sumOf(cells[1] as number, units)
      write(state, cells)
    },

    giveBack(state: number[], at: number, units: number, now: number, _limit: number, [interval = 0]: readonly number[]): void {
      const width = interval / subWindows
      const cells = cellsAt(state, now, width, subWindows)
      const [ordinal] = cells as [number]
      // Units taken by a clock that was ahead count in the running sub-window.
      const place = 1 + Math.max(0, ordinal - bucketAt(at, width))
      if (place > subWindows + 1) return
      cells[place] = Math.max(0, (cells[place] as number) - units)
      write(state, cells)
    },

    lifetime(state: readonly number[], now: number, _limit: number, [interval = 0]: readonly number[]): number {
      const width = interval / subWindows
      const cells = cellsAt(state, now, width, subWindows)
      const newest = cells.findIndex((units, place) => place > 0 && units > 0)
      return newest < 0 ? 0 : Math.max(0, ((cells[0] as number) - (newest - 1) + subWindows + 1) * width - now)
    },
  })
}

/** Sub-windows need not be whole milliseconds, and a rounding error must not start one a millisecond late. */
function bucketAt(time: number, width: number): Ordinal {
  return ordinalAt(time + EARLY, width)
}

/** The state at `now`, as a copy. A process whose clock is a little behind counts in the sub-window that others already use. */
function cellsAt(state: readonly number[], now: number, width: number, subWindows: number): number[] {
  const here = bucketAt(now, width)
  const last = state[0] ?? here
  const ordinal = last > here && last - here <= subWindows ? last : here
  const cells: number[] = [ordinal]
  const gone = ordinal - last
  for (let place = 1; place <= subWindows + 1; place++) cells.push(gone >= 0 && place > gone ? (state[place - gone] ?? 0) : 0)
  return cells
}

function write(state: number[], cells: readonly number[]): void {
  for (const [place, value] of cells.entries()) state[place] = value
}

function sumIn(cells: readonly number[]): number {
  let sum = 0
  for (let place = 1; place < cells.length; place++) sum = sumOf(sum, cells[place] as number)
  return sum
}

/** Units of the oldest sub-window that no longer count while it leaves. */
function releasedOf(cells: readonly number[], now: number, limit: number, width: number): number {
  const leaving = cells.at(-1) as number
  const over = now / width - (cells[0] as number)
  return Math.min(EARLY_RELEASE * limit, leaving * Math.min(1, Math.max(0, over)))
}

/** Milliseconds until all units are back: the newest sub-window with units has left. */
function resetOf(cells: readonly number[], now: number, width: number, subWindows: number): number {
  const newest = cells.findIndex((units, place) => place > 0 && units > 0)
  return newest < 0 ? 0 : Math.max(0, ((cells[0] as number) - (newest - 1) + subWindows + 1) * width - now)
}

/** The sub-windows leave one after the other. The first units of the oldest one are released while it leaves. */
function waitOf(cells: readonly number[], all: number, cost: number, limit: number, now: number, width: number): number {
  const [ordinal] = cells as [number]
  const room = limit - cost + slackOf(limit) / 2
  // Milliseconds until a part of a sub-window has passed.
  const until = (bucket: number, part: number) =>
    wholeWait((bucket + part) * width - now, (after) => {
      const at = now + after
      return part === 0 ? bucketAt(at, width) >= bucket : at / width - bucket >= part
    })
  let units = all
  for (let place = cells.length - 1; place > 0; place--) {
    const leaving = cells[place] as number
    const excess = units - room
    if (excess <= Math.min(EARLY_RELEASE * limit, leaving)) {
      return until(ordinal - (place - 1) + cells.length - 2, excess > 0 ? excess / leaving : 0)
    }
    units -= leaving
  }
  return until(ordinal + cells.length - 1, 0)
}
