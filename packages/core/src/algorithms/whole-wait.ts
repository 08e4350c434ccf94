/** Part of the limit that rounded sums and quotients may be wrong by, and the limit above which it is no larger: far less than a unit. */
const ROUNDING = 1e-10
const LARGE = 1e6

/** Units by which a request may exceed the limit because of rounding errors: a request that returns after `retryAfterMs` must fit. */
export function slackOf(limit: number): number {
  return Math.min(limit, LARGE) * ROUNDING
}

/** Milliseconds by which a computed wait may be wrong: times of the epoch are rounded to 2^-12 ms. */
const ERROR = 0.001

/**
 * A wait in whole milliseconds, never too short. A computed wait may be wrong by a rounding error, so its end is tried.
 *
 * @param fits whether the request fits after this many milliseconds
 */
export function wholeWait(wait: number, fits: (after: number) => boolean): number {
  const after = wholeMilliseconds(wait)
  return fits(after) ? after : after + 1
}

/** The whole milliseconds of a computed wait. Because of rounding errors they may be one too few, which the caller tries. */
export function wholeMilliseconds(wait: number): number {
  return Math.max(1, Math.ceil(wait - ERROR))
}
