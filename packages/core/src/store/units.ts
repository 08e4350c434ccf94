/**
 * The most units that a counter holds: above it not every whole number is a number any more, and sums would go on to lose units.
 * Counts stop here. No limit is higher.
 */
export const MOST_UNITS: number = Number.MAX_SAFE_INTEGER

/** Units and more units, at most what a counter holds. */
export function sumOf(units: number, more: number): number {
  return Math.min(MOST_UNITS, units + more)
}

/** Units taken and units refunded. Both only grow. The units that count are `taken - given`. */
export interface Counted {
  readonly taken: number
  readonly given: number
}

/** The units by which absolute counts exceed the known ones. A late duplicate adds nothing. */
export function growthOver(known: Counted | undefined, sent: Counted): Counted {
  return {
    taken: Math.max(0, sent.taken - (known?.taken ?? 0)),
    given: Math.max(0, sent.given - (known?.given ?? 0)),
  }
}
