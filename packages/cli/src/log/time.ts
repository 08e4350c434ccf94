/** A moment in a log. */
export interface Time {
  /** Milliseconds since the Unix epoch. */
  readonly milliseconds: number
  /** Whether the time is a whole second, because the log has no fractions. */
  readonly coarse: boolean
}

/** Upper bounds of seconds, milliseconds, microseconds and nanoseconds in this century, with the factor to milliseconds. */
const UNITS = [
  [1e11, 1000],
  [1e14, 1],
  [1e17, 1e-3],
  [1e20, 1e-6],
] as const

/** Reads a number since the Unix epoch, an ISO 8601 date, or nginx's `$time_local`. */
export function timeOf(value: unknown): Time | undefined {
  const number = typeof value === 'number' ? value : typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : undefined
  if (number === undefined) return typeof value === 'string' ? dateOf(value) : undefined
  const unit = UNITS.find(([most]) => number < most)
  if (unit === undefined || !(number > 0)) return undefined
  return { milliseconds: number * unit[1], coarse: unit[1] === 1000 && Number.isInteger(number) }
}

/** The latest time to accept. No log is from later, and `Date` has a limit. */
const YEAR_10000 = 253_402_300_800_000

function dateOf(value: string): Time | undefined {
  if (value.length > 64) return undefined
  const local = /^\[?(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})\]?$/.exec(value)
  const milliseconds = Date.parse(local === null ? zoned(value) : `${local[1]} ${local[2]} ${local[3]} ${local[4]} ${local[5]}`)
  return milliseconds > 0 && milliseconds < YEAR_10000 ? { milliseconds, coarse: !/:\d\d[.,]\d/.test(value) } : undefined
}

/** Adds the zone UTC to a time without one, so that the result doesn't depend on this machine. */
function zoned(value: string): string {
  // `Date.parse` finds a date in nearly any text that ends with a number.
  if (!/\d{4}.*\d:\d\d/.test(value)) return ''
  return /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?$/.test(value) ? `${value.replace(' ', 'T').replace(',', '.')}Z` : value
}
