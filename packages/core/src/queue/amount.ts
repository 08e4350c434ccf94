/** The size of waiting requests: the units of requests with a cost, and the number of requests without one. */
export interface Amount {
  units: number
  unsaid: number
}

/** Smaller sums count as 0, because sums of fractions have rounding errors. */
const NOTHING = 1e-9

/** Adds to a sum, or subtracts from it. */
export function add(sum: Amount, { units, unsaid }: Amount, sign: 1 | -1): void {
  sum.units += sign * units
  sum.unsaid += sign * unsaid
  if (sum.units < NOTHING) sum.units = 0
}
