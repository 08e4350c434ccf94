/** The parameters of the bound. */
export interface BoundOf {
  readonly window: 'fixed' | 'sliding'
  /** Units per interval. */
  readonly limit: number
  /** The number of live processes. */
  readonly nodes: number
  /** The most units of one request. */
  readonly largest: number
  /** The most units that all processes together are offered in any stretch of `reactionTime`. */
  readonly peak: number
}

/** Milliseconds between two syncs of a key, at least. It is 2 ms, by clocks that show whole ones. */
const SPACING = 3

/**
 * The time in milliseconds within which the other processes learn of the units that one process allows. The sync in flight returns,
 * the next one arrives at the store, and the announcement arrives at the processes.
 *
 * @param roundTrip to the store and back, in milliseconds
 * @param announcement from the store to a process, in milliseconds
 */
export function reactionTime(roundTrip: number, announcement: number = roundTrip / 2): number {
  return Math.max(roundTrip, SPACING) + roundTrip / 2 + announcement
}

/**
 * The most units that all processes together allow in an interval (or in any stretch of its length, for a sliding window), for any
 * traffic. The formula is that of docs/guides/accuracy.md. It applies while the store answers within its usual round trip,
 * announcements arrive, and the processes stay the same.
 */
export function mostAllowed({ window, limit, nodes, largest, peak }: BoundOf): number {
  const { released, part } = window === 'fixed' ? { released: 0, part: 1 / 2 } : { released: 0.02, part: 2 / 3 }
  const own = (1 + released) * limit
  // Units that processes have not sent yet: their parts of the remaining quota, or one request each.
  return Math.min(nodes * own, own + Math.max(part * limit, nodes * largest) + peak)
}
