import type { MeterPolicy } from '../../algorithms/meter.ts'
import { EARLY_RELEASE, netOf, USUAL_RELEASE } from '../../algorithms/sliding-window/cells.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { SlidingKey } from './key.ts'

/** The parts into which a sliding window is divided. */
export interface WindowShape {
  /** Parts of the interval by which a full key opens. */
  readonly subWindows: number
  /** Parts of a sub-window, which count bursts. */
  readonly parts: number
  /** Parts of a group, which counts other units. */
  readonly group: number
  /** The part of the limit that must be free before a full key opens again. */
  readonly reopenAt: number
}

/** A sliding window at a moment. */
export interface WindowAt {
  readonly policy: MeterPolicy
  readonly shape: WindowShape
  /** Milliseconds of a part of a sub-window. */
  readonly width: number
  /** The running sub-window. */
  readonly bucket: number
  /** Whether the units of a sub-window's first part leave with the whole sub-window. */
  readonly byBucket: boolean
  /** Whether a closed key also opens by parts. */
  readonly byPart: boolean
  /** The moment, in milliseconds since the epoch of the policy's clock. */
  readonly at: number
}

/** The part of the limit that must be free before a key opens again, if a burst has filled it and few requests were rejected. */
const REOPEN_BURST = 0.01

/** A closed key opens when at most this many units are in the window. */
export function reopensBelow(limit: number, { reopenAt }: WindowShape, burst = false): number {
  return limit - Math.max(1, (burst ? Math.min(REOPEN_BURST, reopenAt) : reopenAt) * limit)
}

/** Milliseconds until enough confirmed units have left the window for a request of `cost`. */
export function opensIn(key: SlidingKey, cost: number, window: WindowAt): number {
  const fits = fitsAt(key, key.limit - Math.min(cost, key.limit), window)
  return Math.max(0, (key.closed ? Math.max(fits, reopensAt(key, window)) : fits) - window.at)
}

/** Units that leave together. */
interface Together {
  units: number
  /** The number of parts in which they came, and the part with whose end they have left. */
  readonly parts: number
  end: number
}

/** When at most `most` units are left, as one part leaves after the other. */
function fitsAt({ cells, limit }: SlidingKey, most: number, window: WindowAt): number {
  const { width, byBucket, bucket, at } = window
  const { subWindows, parts, group } = window.shape
  const span = subWindows * parts
  let beyond = cells.total(((bucket - subWindows) * parts) as Ordinal) - most
  let since = at
  if (!(beyond > 0)) return at
  const inGroup: Together = { units: 0, parts: group, end: 0 }
  const inBucket: Together = { units: 0, parts, end: 0 }
  const early = byBucket ? inBucket : inGroup
  const mostEarly = (byBucket ? USUAL_RELEASE : EARLY_RELEASE) * limit

  /** Lets this many units leave. Returns when enough have left, by them or by the early release before. */
  const leave = (units: number, end: number): number | undefined => {
    const time = (end + span) * width
    if (early.units > 0 && beyond <= Math.min(mostEarly, early.units)) {
      const soon = Math.max(since, (early.end + span + (beyond / early.units - 1) * early.parts) * width)
      if (soon < time) return soon
    }
    beyond -= units
    since = time
    return beyond > 0 ? undefined : time
  }
  /** The same for units that leave together before a part does. */
  const leaveBefore = (part: number): number | undefined => {
    for (const together of [inGroup, inBucket]) {
      if (together.units === 0 || together.end > part) continue
      const opens = leave(together.units, together.end)
      if (opens !== undefined) return opens
      together.units = 0
    }
    return undefined
  }

  for (const cell of cells) {
    const { ordinal } = cell
    const before = leaveBefore(ordinal)
    if (before !== undefined) return before
    const together = byBucket && ordinal % parts === 0 ? inBucket : ordinal % group === 0 ? inGroup : undefined
    if (together !== undefined) {
      together.units = netOf(cell)
      together.end = ordinal + together.parts
      continue
    }
    const opens = leave(netOf(cell), ordinal + 1)
    if (opens !== undefined) return opens
  }
  return leaveBefore(Number.POSITIVE_INFINITY) ?? since
}

/** When a closed key opens, as whole sub-windows leave one after the other. Units of the running one don't keep it closed. */
function reopensAt(key: SlidingKey, window: WindowAt): number {
  const { limit, cells } = key
  const { policy, shape, width, bucket, at } = window
  const { subWindows, parts } = shape
  const soon = window.byPart ? fitsAt(key, reopensBelow(limit, shape, key.burst), window) : Number.POSITIVE_INFINITY
  for (let ahead = 0; ahead <= subWindows + 1; ahead++) {
    const oldest = ((bucket - subWindows + ahead) * parts) as Ordinal
    const end = Math.max(bucket + ahead, key.lookedAt + 1) * parts
    const beyond = cells.total(oldest, end) - reopensBelow(limit, shape)
    const units = cells.total(oldest, oldest + parts)
    if (beyond > Math.min(EARLY_RELEASE * limit, units)) continue
    // A part of the oldest sub-window is released while it leaves.
    const wide = width * parts
    return Math.min(soon, (bucket + ahead) * wide + (beyond > 0 ? (beyond / units) * wide : 0))
  }
  return Math.min(soon, at + policy.interval)
}

/**
 * Milliseconds until a process allows a request of `cost` without the store.
 *
 * @param share its part of the key's traffic
 */
export function opensAlone(key: SlidingKey, cost: number, share: number, { policy, shape, width, bucket, at }: WindowAt): number {
  const { failMode, interval } = policy
  const { limit } = key
  if (failMode === 'closed') return (bucket + 1) * shape.parts * width - at
  for (let ahead = 0; ahead <= shape.subWindows + 1; ahead++) {
    const { sum, own, unsent } = key.cells.since(((bucket - shape.subWindows + ahead) * shape.parts) as Ordinal)
    if (unsent + cost <= mostAlone({ limit, sum, own, unsent }, share)) return Math.max(0, (bucket + ahead) * shape.parts * width - at)
  }
  return interval
}

/**
 * Remaining units that a process may use while the store is down: its share, and at least one if it has none. If a small limit's share were
 * 0, an outage of the store would be an outage of the service.
 */
export function mostAlone({ limit, sum, own, unsent }: Counted, share: number): number {
  const room = Math.max(0, limit - (sum - unsent))
  return Math.max(room * share, room > 0 && own === 0 ? 1 : 0)
}

/** Confirmed units in the window: all of them, the own ones, and the own ones that the store lacks. */
interface Counted {
  readonly limit: number
  readonly sum: number
  readonly own: number
  readonly unsent: number
}
