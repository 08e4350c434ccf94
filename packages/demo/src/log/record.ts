/** One request of an access log. */
export interface LogRecord {
  /** Milliseconds since the Unix epoch. Logs have a resolution of one second. */
  readonly time: number
  /** The first field: an address, or a host name. */
  readonly client: string
  /** The method. Undefined if the request line is no HTTP request (TLS bytes, probes, nothing). */
  readonly method: string | undefined
  /** The request's target as logged. `/` if the request line is no HTTP request. */
  readonly target: string
  readonly status: number | undefined
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const CLIENT = /^"?(\S+)\s/
// The user field may contain blanks, quotes and brackets, so the pattern searches for the time.
const TIME = /\[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)\] "/g
const AFTER_REQUEST = /^" (\d{3}|-) (?:\d+|-)(?:\s|$)/
const REQUEST = /^([A-Za-z][A-Za-z_-]{0,23}) +(\S.*?)(?: +HTTP\/\d(?:\.\d)?)?$/s
const AGENT_LINE = /^\s+"(?:[^"\\]|\\.)*"\s*$/

/**
 * Reads one line of a log in the Common or Combined Log Format.
 *
 * @param line decoded as latin1, so that every byte is one character
 * @returns undefined if the line is no record
 */
export function parseLine(line: string): LogRecord | undefined {
  const client = CLIENT.exec(line)?.[1]
  if (client === undefined) return undefined
  // The user field may contain a forged time. The record's time is the first one before a request and a status.
  TIME.lastIndex = 0
  for (let found = TIME.exec(line); found !== null; found = TIME.exec(line)) {
    const time = timeOf(found)
    const end = closingQuote(line, TIME.lastIndex)
    if (time === undefined || end < 0) continue
    const after = AFTER_REQUEST.exec(line.slice(end))
    if (after === null) continue
    const request = REQUEST.exec(line.slice(TIME.lastIndex, end))
    const status = after[1] === '-' ? undefined : Number(after[1])
    return { time, client, method: request?.[1], target: request?.[2] ?? '/', status }
  }
  return undefined
}

/**
 * Whether a line is only the rest of a record that was broken before its user agent. The previous line need not be the record's first
 * half, because filters and merges of logs separate them.
 */
export function isAgentLine(line: string): boolean {
  return AGENT_LINE.test(line)
}

function closingQuote(line: string, from: number): number {
  for (let at = from; at < line.length; at++) {
    const c = line.charCodeAt(at)
    if (c === 0x22) return at
    if (c === 0x5c) at++
  }
  return -1
}

function timeOf(match: RegExpExecArray): number | undefined {
  const [day, year, hour, minute, second] = [1, 3, 4, 5, 6].map((group) => Number(match[group])) as [number, number, number, number, number]
  const month = MONTHS.indexOf(match[2] ?? '')
  // 60 is a leap second.
  if (month < 0 || hour > 23 || minute > 59 || second > 60) return undefined
  const midnight = Date.UTC(year, month, day)
  // `Date.UTC` accepts 31 June as 1 July. A log with such a date is wrong.
  if (new Date(midnight).getUTCDate() !== day) return undefined
  const offset = (Number(match[8]) * 60 + Number(match[9])) * (match[7] === '-' ? -1 : 1)
  return midnight + ((hour * 60 + minute - offset) * 60 + second) * 1000
}
