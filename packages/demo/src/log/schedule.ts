import { METHODS } from 'node:http'
import type { LogRecord } from './record.ts'

/** A logged request with the time and the form in which it is sent again. */
export interface ScheduledRequest {
  /** Milliseconds since the replay began. */
  readonly at: number
  /** The client whose limit counts the request. */
  readonly client: string
  readonly method: string
  readonly path: string
  /** Time of the request in the log, milliseconds since the epoch. */
  readonly logged: number
}

/**
 * The part of each interval in which its requests are sent. A minute of the log becomes a second, so a request from its last
 * milliseconds could arrive in the next interval and count there by chance. The free part at the end is longer than at the start, because
 * requests are only ever late. Both limiters get the same requests.
 */
const FIRST = 0.05
const LAST = 0.85

/**
 * Schedules the records of a window. The log's intervals become `interval / speed` long, and each request keeps its interval and its
 * place in it. Requests of one second have the same time in the log, so they are spread over that second.
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
      // If an interval is no whole number of seconds, a second may reach beyond it. Its requests stay in the interval in which it starts.
      const part = Math.min(1, place / interval - ordinal)
      const at = (ordinal + FIRST + (LAST - FIRST) * part) * (interval / speed)
      scheduled.push({ at, client: record.client, method: methodOf(record), path: pathOf(record.target), logged: time })
    }
    first = next
  }
  return scheduled
}

const KNOWN_METHODS = new Set(METHODS)
/** Characters. A path may be cut because the limit doesn't use it, and Node.js rejects headers above 16 KB. */
const LONGEST_PATH = 2048

/** The method to send. Tunnels, and methods that Node.js would reject before any middleware, become GET. */
function methodOf({ method }: LogRecord): string {
  return method !== undefined && method !== 'CONNECT' && KNOWN_METHODS.has(method) ? method : 'GET'
}

/** A path that every framework accepts, as similar to the logged target as possible. */
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
    // Frameworks answer 400 to paths that they can't decode, some before and some after the throttle.
    return path.replaceAll('%', '%25')
  }
}
