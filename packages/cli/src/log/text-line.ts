import { isIP } from 'node:net'
import { hasAddress } from './client.ts'
import { type LogRecord, requestLine } from './record.ts'
import { timeOf as isoTimeOf } from './time.ts'

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
// The user field may contain blanks, quotes and brackets, so the pattern searches for the time.
const TIME = /\[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d)(\.\d{1,9})? ([+-])(\d\d)(\d\d)\] "/g
/** The variable `$time_iso8601` of nginx. It needs a zone, because otherwise the moment is unknown. */
const ISO_TIME = /\[(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))\] "/g
/** A word, or a list of addresses. */
const WORD = /[^\s,]+(?:,\s*[^\s,]+)*/g
/** The referer and the user agent. */
const QUOTED = /^ "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"/
/**
 * A quoted field, such as `rt="0.004"` or `"-"`. A field without a closing quote reaches to the end of the line, so that no part is
 * searched twice.
 */
const FIELD = /(=?)"((?:[^"\\]|\\[\s\S])*)("|\\?$)/g
const AFTER_REQUEST = /" (?:\d{3}|-) (?:\d+|-)(?= |\t|$)/y
/**
 * The variable `$request_time` of nginx after the user agent, in seconds with three decimals. The first such number counts, because times
 * of upstreams follow it.
 */
const DURATION = /[\s"](?:(?:rt|request_time)[=:]"?)?(\d{1,9}\.\d{3})(?=["\s]|$)/
/** The status, before the size of the answer. */
const STATUS = /" (\d{3}) (?:\d+|-)$/
const LONGEST_STATUS = 40
const AGENT_LINE = /^\s+"(?:[^"\\]|\\.)*"\s*$/

/**
 * Reads a line of the Common or Combined Log Format, after any prefix of a log collector. Text after the known fields is ignored.
 * An unknown client is `''`.
 *
 * @param line decoded as latin1, so that every byte is one character
 * @returns undefined if the line is no record
 */
export function parseTextLine(line: string): LogRecord | undefined {
  return recordAt(line, TIME, (found) => timeOf(found)) ?? recordAt(line, ISO_TIME, ([, time]) => isoTimeOf(time)?.milliseconds)
}

function recordAt(line: string, pattern: RegExp, timeIn: (found: RegExpExecArray) => number | undefined): LogRecord | undefined {
  // The user field may contain a forged time. The record's time is the first one before a request and a status.
  pattern.lastIndex = 0
  for (let found = pattern.exec(line); found !== null; found = pattern.exec(line)) {
    const from = pattern.lastIndex
    const time = timeIn(found)
    const quote = time === undefined ? -1 : closingQuote(line, from)
    if (time === undefined || quote < 0) continue
    AFTER_REQUEST.lastIndex = quote
    if (!AFTER_REQUEST.test(line)) continue
    return new TextRecord(time, found[0], line.slice(from, quote), line, found.index, AFTER_REQUEST.lastIndex)
  }
  return undefined
}

/** The part of a line before the time: client, identity and user, after any prefix of other programs. */
function headOf(line: string, timeStart: number): string {
  return line.slice(line.charCodeAt(0) === 0x22 ? 1 : 0, timeStart)
}

/**
 * The client of a head, as it was logged. After it comes an identity, which is `-` in nearly all logs. Clients choose their user names, and
 * may choose the host name. If more than one address could be the client's, the client is unknown.
 *
 * @returns `''` if the client is unknown
 */
function clientOf(head: string): string {
  const end = head.indexOf(' ')
  // Nearly all lines have this form.
  if (head.startsWith(' - ', end) && isIP(head.slice(0, end)) !== 0) return head.slice(0, end)
  const words: readonly string[] = head.match(WORD) ?? []
  const [first = '', second] = words
  const dashed = words.filter((word, at) => words[at + 1] === '-' && hasAddress(word))
  const [client] = dashed
  if (client !== undefined) {
    const at = words.indexOf(client)
    if (at === 0) return client
    const before = words[at - 1] as string
    return dashed.every((other) => other === client) && !hasAddress(before) && !(at === 2 && second === '-') ? client : ''
  }
  // A host name.
  if (second === '-' && words.length <= 3) return first
  const named = words.filter(hasAddress)
  const [only = ''] = named
  return named.length === 1 && !words.includes('-') && (only === words.at(-1) || (only === first && words.length === 3)) ? only : ''
}

/** Whether a line is only the end of a record that was broken before its user agent. */
export function isAgentLine(line: string): boolean {
  return AGENT_LINE.test(line)
}

class TextRecord implements LogRecord {
  time: number
  readonly coarse: boolean
  client: string
  readonly clientField = 'the address before the time'
  readonly method: string
  readonly target: string
  readonly valid: boolean
  readonly #line: string
  readonly #timeStart: number
  readonly #rest: number

  constructor(time: number, timeText: string, request: string, line: string, timeStart: number, rest: number) {
    const { method, target, valid } = requestLine(request)
    this.time = time
    this.coarse = !/[.,]/.test(timeText)
    this.client = clientOf(headOf(line, timeStart))
    this.method = method
    this.target = target
    this.valid = valid
    this.#line = line
    this.#timeStart = timeStart
    this.#rest = rest
  }

  get duration(): number | undefined {
    const rest = this.#line.slice(this.#rest)
    // Quoted text comes from clients, and may look like a time.
    const found = DURATION.exec(rest.slice(QUOTED.exec(rest)?.[0].length ?? 0))?.[1]
    return found === undefined ? undefined : Number(found) * 1000
  }

  get status(): string | undefined {
    return STATUS.exec(this.#line.slice(Math.max(0, this.#rest - LONGEST_STATUS), this.#rest))?.[1]
  }

  field(name: string): string | undefined {
    const head = headOf(this.#line, this.#timeStart)
    if (/^\d{1,3}$/.test(name)) return known(head.match(WORD)?.[Number(name) - 1])
    switch (name.replace(/^http_/, '').replaceAll('_', '-')) {
      case 'user':
      case 'remote-user':
        return known(userOf(head))
      case 'referer':
        return known(this.#quoted()?.[1])
      case 'user-agent':
        return known(this.#quoted()?.[2])
      case 'x-forwarded-for':
        return this.#forwarded()
      default:
        return undefined
    }
  }

  /** The referer and the user agent. */
  #quoted(): RegExpExecArray | null {
    return QUOTED.exec(this.#line.slice(this.#rest))
  }

  /** In nginx's format `main` the header follows the user agent. Its other quoted fields contain no lists of addresses. */
  #forwarded(): string | undefined {
    const rest = this.#line.slice(this.#rest)
    const behind = rest.slice(this.#quoted()?.[0].length ?? rest.length)
    for (const [, named, text = '', end] of behind.matchAll(FIELD))
      if (named === '' && end === '"' && (text === '-' || hasAddress(text))) return known(text)
    return undefined
  }
}

/** The user, which follows the client and the identity. */
function userOf(head: string): string {
  const client = clientOf(head)
  return client === ''
    ? ''
    : head
        .slice(head.indexOf(client) + client.length)
        .trim()
        .replace(/^\S+ /, '')
}

function known(text: string | undefined): string | undefined {
  return text === undefined || text === '' || text === '-' ? undefined : text
}

function closingQuote(line: string, from: number): number {
  for (let at = from; at < line.length; at++) {
    const code = line.charCodeAt(at)
    if (code === 0x22) return at
    if (code === 0x5c) at++
  }
  return -1
}

let lastDay = ''
let lastMidnight: number | undefined

function timeOf([, day = '', month = '', year = '', hour, minute, second, fraction = '0', sign, hours, minutes]: RegExpExecArray):
  | number
  | undefined {
  const date = day + month + year
  // Nearly all lines have the date of the previous line.
  if (date !== lastDay) {
    lastDay = date
    lastMidnight = midnightOf(Number(day), MONTHS.indexOf(month), Number(year))
  }
  const [h, m, s] = [Number(hour), Number(minute), Number(second)]
  // 60 is a leap second.
  if (lastMidnight === undefined || h > 23 || m > 59 || s > 60) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
  return lastMidnight + ((h * 60 + m - offset) * 60 + s) * 1000 + Number(fraction) * 1000
}

function midnightOf(day: number, month: number, year: number): number | undefined {
  if (month < 0) return undefined
  const midnight = Date.UTC(year, month, day)
  // `Date.UTC` accepts 31 June as 1 July. A log with such a date is wrong.
  return new Date(midnight).getUTCDate() === day ? midnight : undefined
}
