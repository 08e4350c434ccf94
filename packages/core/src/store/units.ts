/**
 * The most units of a counter. Above it, sums would lose units, because not every whole number can be represented. Counts stop here. No
 * limit is higher.
 */
export const MOST_UNITS: number = Number.MAX_SAFE_INTEGER

/** Adds units, up to `MOST_UNITS`. */
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
