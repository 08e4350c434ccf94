import { type LogRecord, requestLine } from './record.ts'

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
// The user field may hold anything, blanks, quotes and brackets too, so the time is searched for instead of counted to.
const TIME = /\[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)\] "/g
/** The referer and the user agent. */
const QUOTED = /^ "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"/
const AFTER_REQUEST = /" (?:\d{3}|-) (?:\d+|-)(?= |\t|$)/y
/** nginx's `$request_time` behind the user agent, seconds with three decimals: the first of such numbers, as times of upstreams come later. */
const DURATION = /[\s"](?:(?:rt|request_time)[=:]"?)?(\d{1,9}\.\d{3})(?=["\s]|$)/
const AGENT_LINE = /^\s+"(?:[^"\\]|\\.)*"\s*$/

/**
 * Reads a line of the Common or Combined Log Format; what stands behind those is not read.
 *
 * @param line decoded as latin1, so that every byte is one character
 * @returns undefined when the line is no record
 */
export function parseTextLine(line: string): LogRecord | undefined {
  const start = line.charCodeAt(0) === 0x22 ? 1 : 0
  const end = line.indexOf(' ', start)
  if (end <= start) return undefined
  // A forged time in the user field may come first: the record's is the first one that a request and a status follow.
  TIME.lastIndex = end
  for (let found = TIME.exec(line); found !== null; found = TIME.exec(line)) {
    const from = TIME.lastIndex
    const time = timeOf(found)
    const quote = time === undefined ? -1 : closingQuote(line, from)
    if (time === undefined || quote < 0) continue
    AFTER_REQUEST.lastIndex = quote
    if (!AFTER_REQUEST.test(line)) continue
    return new TextRecord(time, line.slice(start, end), line.slice(from, quote), line, end, found.index, AFTER_REQUEST.lastIndex)
  }
  return undefined
}

/** Whether a line is the end of a record that was broken in front of its user agent, and nothing else. */
export function isAgentLine(line: string): boolean {
  return AGENT_LINE.test(line)
}

class TextRecord implements LogRecord {
  time: number
  readonly coarse = true
  readonly client: string
  readonly method: string
  readonly target: string
  readonly valid: boolean
  readonly #line: string
  readonly #clientEnd: number
  readonly #timeStart: number
  readonly #rest: number

  constructor(time: number, client: string, request: string, line: string, clientEnd: number, timeStart: number, rest: number) {
    const { method, target, valid } = requestLine(request)
    this.time = time
    this.client = client
    this.method = method
    this.target = target
    this.valid = valid
    this.#line = line
    this.#clientEnd = clientEnd
    this.#timeStart = timeStart
    this.#rest = rest
  }

  get duration(): number | undefined {
    const rest = this.#line.slice(this.#rest)
    // What clients send stands in quotes, and may look like a time.
    const found = DURATION.exec(rest.slice(QUOTED.exec(rest)?.[0].length ?? 0))?.[1]
    return found === undefined ? undefined : Number(found) * 1000
  }

  field(name: string): string | undefined {
    if (name === 'user' || name === 'remote_user')
      return known(this.#line.slice(this.#clientEnd, this.#timeStart).trim().replace(/^\S+ /, ''))
    if (name !== 'referer' && name !== 'user-agent') return undefined
    const [, referer, agent] = QUOTED.exec(this.#line.slice(this.#rest)) ?? []
    return known(name === 'referer' ? referer : agent)
  }
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

function timeOf([, day = '', month = '', year = '', hour, minute, second, sign, hours, minutes]: RegExpExecArray): number | undefined {
  const date = day + month + year
  // Nearly all lines are of the day of the line before.
  if (date !== lastDay) {
    lastDay = date
    lastMidnight = midnightOf(Number(day), MONTHS.indexOf(month), Number(year))
  }
  const [h, m, s] = [Number(hour), Number(minute), Number(second)]
  // 60 is a leap second.
  if (lastMidnight === undefined || h > 23 || m > 59 || s > 60) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
  return lastMidnight + ((h * 60 + m - offset) * 60 + s) * 1000
}

function midnightOf(day: number, month: number, year: number): number | undefined {
  if (month < 0) return undefined
  const midnight = Date.UTC(year, month, day)
  // `Date.UTC` lets 31 June be 1 July; a log that says so is not to be trusted.
  return new Date(midnight).getUTCDate() === day ? midnight : undefined
}
