/** How long so many units take to run out at the pace of a limit, in milliseconds. At a limit of 0 none does: no request waits for that. */
export function drainTime(units: number, limit: number, interval: number): number {
  return units > 0 && limit > 0 ? (units * interval) / limit : 0
}
