/** Milliseconds in which units drain at the pace of a limit. At a limit of 0 none drain, but no request waits for that. */
export function drainTime(units: number, limit: number, interval: number): number {
  return units > 0 && limit > 0 ? (units * interval) / limit : 0
}
