declare const ordinalBrand: unique symbol

/** The number of a cell since the Unix epoch: `floor(time / width)`. It is branded, so that a time can't be passed as an ordinal. */
export type Ordinal = number & { readonly [ordinalBrand]: true }

/** From `start` up to, but not including, `end`. Both are milliseconds since the Unix epoch. */
export interface Interval {
  readonly start: number
  readonly end: number
}

/** A clock by which intervals are equally long. */
export interface EpochTime {
  /** Milliseconds since the epoch, at a time of the monotonic clock. */
  at(monotonic: number): number
  /** The monotonic time at which `at` returns `time`. */
  monotonicAt(time: number): number
  /** The most by which `at` may be off, in milliseconds. */
  uncertainty(monotonic: number): number
}

/** The ordinal of the cell of `width` milliseconds that contains `time` (milliseconds since the epoch). */
export function ordinalAt(time: number, width: number): Ordinal {
  return Math.floor(time / width) as Ordinal
}

/** The begin of the cell `ordinal`, in milliseconds since the epoch. A time equal to it belongs to the cell. */
export function startOf(ordinal: Ordinal, width: number): number {
  return ordinal * width
}

/** The end of the cell `ordinal`, in milliseconds since the epoch. A time equal to it belongs to the next cell. */
export function endOf(ordinal: Ordinal, width: number): number {
  return (ordinal + 1) * width
}

/**
 * The end of the span that contains `time`, in milliseconds since the epoch. It is always later than `time`. Spans are equal parts of the
 * interval. They need not be whole milliseconds, and the last one ends exactly with its interval.
 */
export function spanEnd(time: number, interval: number, spans: number): number {
  const ordinal = ordinalAt(time, interval)
  const start = startOf(ordinal, interval)
  // Division and multiplication round, so the loop handles a time that lies exactly on a boundary.
  for (let index = Math.floor(((time - start) * spans) / interval); index < spans; index++) {
    const end = index + 1 === spans ? endOf(ordinal, interval) : start + ((index + 1) * interval) / spans
    if (end > time) return end
  }
  return endOf(ordinal, interval)
}
