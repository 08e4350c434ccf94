declare const ordinalBrand: unique symbol

/**
 * The number of an interval (or of a bucket of a sliding window) in the Unix epoch: `floor(time / width)`. Branded, so
 * that a time cannot be passed where an ordinal is meant.
 */
export type Ordinal = number & { readonly [ordinalBrand]: true }

/** From `start` up to `end`, which it does not hold; milliseconds since the Unix epoch. */
export interface Interval {
  readonly start: number
  readonly end: number
}

/** A clock by which intervals are equally long. */
export interface EpochTime {
  /** Milliseconds since the epoch, at a time of the monotonic clock. */
  at(monotonic: number): number
  /** When `at` will be `time`, on the monotonic clock. */
  monotonicAt(time: number): number
  /** By how much `at` may be off, in milliseconds. */
  uncertainty(monotonic: number): number
}

/** The ordinal of the cell of `width` milliseconds that holds `time` (milliseconds since the epoch). */
export function ordinalAt(time: number, width: number): Ordinal {
  return Math.floor(time / width) as Ordinal
}

/** When the cell `ordinal` begins, milliseconds since the epoch. A time equal to it belongs to the cell. */
export function startOf(ordinal: Ordinal, width: number): number {
  return ordinal * width
}

/** When the cell `ordinal` ends, milliseconds since the epoch. A time equal to it belongs to the next cell. */
export function endOf(ordinal: Ordinal, width: number): number {
  return (ordinal + 1) * width
}

/**
 * When the span that holds `time` ends, milliseconds since the epoch; always later than `time`. Spans are equal parts
 * of the interval; they need not be whole milliseconds, and the last one ends exactly with its interval.
 */
export function spanEnd(time: number, interval: number, spans: number): number {
  const ordinal = ordinalAt(time, interval)
  const start = startOf(ordinal, interval)
  // Division and multiplication round; the loop takes care of a time that lies exactly on a boundary.
  for (let index = Math.floor(((time - start) * spans) / interval); index < spans; index++) {
    const end = index + 1 === spans ? endOf(ordinal, interval) : start + ((index + 1) * interval) / spans
    if (end > time) return end
  }
  return endOf(ordinal, interval)
}
