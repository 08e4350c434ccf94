/** The parameters of the bound. */
export interface BoundOf {
  readonly window: 'fixed' | 'sliding'
  /** Units per interval. */
  readonly limit: number
  /** Live nodes. */
  readonly nodes: number
  /** The most units that one request takes. */
  readonly largest: number
  /** The most units that are offered, at all nodes together, in any stretch of `reactionTime`. */
  readonly peak: number
}

/** Milliseconds between two exchanges of a key, at least: 2, by clocks that show whole ones. */
const SPACING = 3

/**
 * Within this time what one node allows is told to the others, in milliseconds: the exchange under way returns, the next one
 * arrives at the store, and the announcement at the nodes.
 *
 * @param roundTrip to the store and back, milliseconds
 * @param announcement from the store to a node, milliseconds
 */
export function reactionTime(roundTrip: number, announcement: number = roundTrip / 2): number {
  return Math.max(roundTrip, SPACING) + roundTrip / 2 + announcement
}

/**
 * Units that all nodes together allow at most, in an interval (of a sliding window: in any stretch of its length), whatever
 * comes when and where: the formula of docs/guides/accuracy.md. It holds while the store answers within its usual round trip,
 * announcements arrive, and the nodes stay the same.
 */
export function mostAllowed({ window, limit, nodes, largest, peak }: BoundOf): number {
  const { released, part } = window === 'fixed' ? { released: 0, part: 1 / 2 } : { released: 0.02, part: 2 / 3 }
  const own = (1 + released) * limit
  // The units that nodes hold back: their parts of the remaining quota, or one request each.
  return Math.min(nodes * own, own + Math.max(part * limit, nodes * largest) + peak)
}
