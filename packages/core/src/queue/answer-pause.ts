import { parseList } from 'structured-headers'

/** Statuses whose `Retry-After` counts: the client sent too many requests, or the service is down for a while. */
const TOO_MANY: ReadonlySet<number> = new Set([403, 429, 503])
/** Milliseconds to pause after a 429 that names no pause. */
const USUAL_PAUSE = 1_000
/** Larger numbers are seconds since the epoch, as GitHub sends, because no pause lasts 30 years. */
const EPOCH_SECONDS = 1_000_000_000
/** Larger numbers are milliseconds since the epoch, or smaller units. As seconds they would be 3,000 years ahead. */
const MOST_SECONDS = 100_000_000_000

const NUMBER = /^\d{1,19}(?:\.\d{1,9})?$/
const UNITS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }
/** Durations as OpenAI sends them: `1s`, `6m0s`, `1h30m`, `20ms`. */
const DURATION = /^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[dhms]))+$/
const ISO_DATE = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(?:[Zz]|UTC|GMT|([+-]\d\d):?(\d\d))?$/
/** The three forms of RFC 9110, 5.6.7. They contain commas, which also separate the values of a list. */
const HTTP_DATES =
  /[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}/g

/**
 * Milliseconds to wait before the next request, according to a response. 0 if the response requires no pause. A 429 always requires one.
 * The result may be very long, so the caller limits it.
 *
 * @param now wall clock, milliseconds. Used if the response has no `Date`, because dates in a response come from the other side's clock
 */
export function pauseOf(status: number, headers: Headers, now: number): number {
  const sent = dateOf(headers.get('date')?.trim() ?? '')
  const at = sent ?? now
  const asked = TOO_MANY.has(status) ? (millisecondsOf(headers.get('retry-after-ms')) ?? retryAfterMs(headers, at)) : undefined
  const pause = Math.max(0, asked ?? fieldsPause(status, headers, at) ?? 0)
  return pause === 0 && status === 429 ? USUAL_PAUSE : pause
}

/** Reads `retry-after-ms`, which Azure and OpenAI send. */
function millisecondsOf(field: string | null): number | undefined {
  return field !== null && NUMBER.test(field.trim()) ? Number(field) : undefined
}

function retryAfterMs(headers: Headers, now: number): number | undefined {
  return longest(headers.get('retry-after'), now) ?? longest(headers.get('x-retry-after'), now)
}

/** The longest pause of a field, because a proxy may have added another value to it. */
function longest(field: string | null, now: number): number | undefined {
  if (field === null) return undefined
  const values = [...(field.match(HTTP_DATES) ?? []), ...field.replace(HTTP_DATES, '').split(',')]
  return most(values.map((value) => untilOf(value.trim(), now)))
}

function most(pauses: readonly (number | undefined)[]): number | undefined {
  const known = pauses.filter((pause) => pause !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

/**
 * Milliseconds from `now` until the time of a value. The value is a number of seconds, a duration with units, or a date. Undefined for
 * anything else.
 */
function untilOf(value: string, now: number): number | undefined {
  if (NUMBER.test(value)) {
    let seconds = Number(value)
    while (seconds > MOST_SECONDS) seconds /= 1_000
    return seconds > EPOCH_SECONDS ? 1_000 * seconds - now : 1_000 * seconds
  }
  if (DURATION.test(value)) {
    let sum = 0
    for (const [, count, unit] of value.matchAll(/([\d.]+)([a-z]+)/g)) sum += Number(count) * (UNITS[unit as string] as number)
    return sum
  }
  const date = dateOf(value)
  return date === undefined ? undefined : date - now
}

/** Milliseconds since the epoch. A date without a time zone is in UTC. */
function dateOf(value: string): number | undefined {
  const iso = ISO_DATE.exec(value)
  const [date] =
    iso === null ? (value.match(HTTP_DATES) ?? []) : [`${iso[1]}T${iso[2]}${iso[3] === undefined ? 'Z' : `${iso[3]}:${iso[4]}`}`]
  if (date === undefined) return undefined
  // biome-ignore lint/style/noRestrictedGlobals: it reads a date, not the time.
  const time = Date.parse(iso === null && !date.endsWith('GMT') ? `${date} GMT` : date)
  return Number.isNaN(time) ? undefined : time
}

/** The longest pause of all limits whose remaining quota is 0. */
function fieldsPause(status: number, headers: Headers, now: number): number | undefined {
  const pauses = [draftPause(headers.get('ratelimit'))]
  headers.forEach((value, name) => {
    // `RateLimit-Reset`, `X-RateLimit-Reset`, `X-Rate-Limit-Reset`, `X-RateLimit-Reset-Tokens`, `Anthropic-RateLimit-Requests-Reset` …
    if (!/rate-?limit-(?:.*-)?reset(?:-|$)/.test(name)) return
    const remaining = headers.get(name.replace(/reset(?!.*reset)/, 'remaining'))
    const used = remaining === null ? status === 429 : remaining.split(',').some((left) => /^\s*(?:-\d+|0+)(?:\.0*)?\s*$/.test(left))
    if (used) pauses.push(longest(value, now))
  })
  return most(pauses)
}

/** Reads `RateLimit` in the form of draft 8 and later (`"name";r=0;t=30`), or of draft 7 (`limit=10, remaining=0, reset=30`). */
function draftPause(field: string | null): number | undefined {
  if (field === null) return undefined
  let pause: number | undefined
  try {
    for (const [, parameters] of parseList(field)) {
      const seconds = parameters.get('t')
      if (parameters.get('r') === 0 && typeof seconds === 'number') pause = Math.max(pause ?? 0, 1_000 * seconds)
    }
  } catch {
    // Fields in another form contain no usable pause.
  }
  const seconds = /\bremaining=0(?=[,\s]|$)/.test(field) ? /\breset=(\d{1,10})/.exec(field)?.[1] : undefined
  return seconds === undefined ? pause : 1_000 * Number(seconds)
}
