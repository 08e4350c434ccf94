/**
 * The most units that a counter holds: above it not every whole number is a number any more, and sums would go on to lose units.
 * Counts stop here; nobody's limit is higher.
 */
export const MOST_UNITS: number = Number.MAX_SAFE_INTEGER

/** Units and more units, at most what a counter holds. */
export function sumOf(units: number, more: number): number {
  return Math.min(MOST_UNITS, units + more)
}

/** Whether a value can be what a request costs. */
export function isCost(cost: unknown): cost is number {
  return typeof cost === 'number' && cost > 0 && cost < Number.POSITIVE_INFINITY
}

/** Whether a value can be the limit of one key. */
export function isLimit(limit: unknown): limit is number {
  return typeof limit === 'number' && (limit >= 1 || limit === 0)
}
