import { METHODS } from 'node:http'
import type { LogRecord } from './record.ts'

/** A logged request, and when and how it is sent again. */
export interface ScheduledRequest {
  /** Milliseconds since the replay began. */
  readonly at: number
  /** Whose limit it counts towards. */
  readonly client: string
  readonly method: string
  readonly path: string
  /** When the log says that it came, milliseconds since the epoch. */
  readonly logged: number
}

/**
 * The part of each interval in which its requests are sent. A log's minute becomes a second, and a request sent in its
 * last milliseconds would arrive in the next one: where it counts would be chance. What is left free at the end is
 * longer than at the beginning, as requests can only be late. Both limiters get the same.
 */
const FIRST = 0.05
const LAST = 0.85

/**
 * When each record of a window is sent: the log's intervals become `interval / speed` long, each request stays in its
 * own, and keeps its place in it. Those of one second, which the log does not tell apart, are spread over that second.
 *
 * @param from start of an interval, milliseconds since the epoch
 * @param interval milliseconds of the log's time
 */
export function schedule(records: readonly LogRecord[], from: number, interval: number, speed: number): ScheduledRequest[] {
  const scheduled: ScheduledRequest[] = []
  for (let first = 0; first < records.length; ) {
    const { time } = records[first] as LogRecord
    let next = first
    while (next < records.length && records[next]?.time === time) next++
    for (let i = first; i < next; i++) {
      const record = records[i] as LogRecord
      const place = time - from + (1000 * (i - first)) / (next - first)
      const ordinal = Math.floor((time - from) / interval)
      // A second that reaches beyond an interval that is no whole number of seconds stays in the interval of its start.
      const part = Math.min(1, place / interval - ordinal)
      const at = (ordinal + FIRST + (LAST - FIRST) * part) * (interval / speed)
      scheduled.push({ at, client: record.client, method: methodOf(record), path: pathOf(record.target), logged: time })
    }
    first = next
  }
  return scheduled
}

const KNOWN_METHODS = new Set(METHODS)
/** A path that the limit doesn't look at need not be whole; Node rejects headers beyond 16 KB. */
const LONGEST_PATH = 2048

/** Methods that Node's server would reject before any middleware sees them, and tunnels, are sent as GET. */
function methodOf({ method }: LogRecord): string {
  return method !== undefined && method !== 'CONNECT' && KNOWN_METHODS.has(method) ? method : 'GET'
}

/** A path that every framework takes, as near to the logged target as that allows. */
export function pathOf(target: string): string {
  const withoutOrigin = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
  const visible = withoutOrigin
    .slice(0, LONGEST_PATH)
    .replace(/[^\x21-\x7e]|["<>\\^`{|}#]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
  const path = visible.startsWith('/') ? visible : `/${visible}`
  try {
    decodeURIComponent(path)
    return path
  } catch {
    // Frameworks answer 400 to what they can't decode, some before and some after the throttle.
    return path.replaceAll('%', '%25')
  }
}
