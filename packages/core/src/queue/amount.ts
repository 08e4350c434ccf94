/** How much waits: units where requests say what they cost, and how many don't. */
export interface Amount {
  units: number
  unsaid: number
}

/** Fewer units are none: sums of fractions are rounded. */
const NOTHING = 1e-9

/** Adds to a sum, or takes away. */
export function add(sum: Amount, { units, unsaid }: Amount, sign: 1 | -1): void {
  sum.units += sign * units
  sum.unsaid += sign * unsaid
  if (sum.units < NOTHING) sum.units = 0
}
