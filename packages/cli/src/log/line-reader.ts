import { parseJsonLine } from './json-line.ts'
import type { LogRecord } from './record.ts'
import { isAgentLine, parseTextLine } from './text-line.ts'

/** What was in a log, line by line. */
export interface LineCounts {
  /** Lines that are not empty. */
  lines: number
  /** Requests that could be read. */
  records: number
  /** Those of them that hold no HTTP request, such as TLS bytes or nothing: they count as `GET /`. */
  withoutRequest: number
  /** Lines that are only the end of a record that was broken in front of its user agent. */
  broken: number
  /** Lines that could not be read, and the first few of them as they were, cut. */
  unreadable: number
  readonly samples: string[]
}

/** Bytes. A longer line is no request: servers cap a request line at 8 to 64 KB. It is skipped without being kept. */
const LONGEST_LINE = 128 * 1024
const SAMPLES = 3
const SAMPLE_LENGTH = 200
const NEWLINE = 0x0a

export function noLines(): LineCounts {
  return { lines: 0, records: 0, withoutRequest: 0, broken: 0, unreadable: 0, samples: [] }
}

/** Takes the bytes of a log in pieces of any size, and hands out its records. Holds a line at most. */
export class LineReader {
  readonly #counts: LineCounts
  #rest: Buffer[] = []
  #restLength = 0

  /** @param counts to which this log's lines are added */
  constructor(counts: LineCounts) {
    this.#counts = counts
  }

  /** @param records to which the records of these bytes are added */
  write(bytes: Buffer, records: LogRecord[]): void {
    let from = 0
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      this.#line(bytes, from, end, records)
      from = end + 1
    }
    if (from === bytes.length) return
    this.#restLength += bytes.length - from
    // A copy: the piece is let go of.
    if (this.#restLength <= LONGEST_LINE) this.#rest.push(Buffer.from(bytes.subarray(from)))
    else this.#rest.length = Math.min(this.#rest.length, 1)
  }

  /** The log is over: what has come of its last line is one. */
  end(records: LogRecord[]): void {
    if (this.#restLength > 0) this.#line(Buffer.alloc(0), 0, 0, records)
  }

  #line(bytes: Buffer, from: number, end: number, records: LogRecord[]): void {
    const length = this.#restLength + end - from
    let line = bytes
    if (this.#restLength > 0) {
      line = Buffer.concat([...this.#rest, bytes.subarray(from, end)])
      from = 0
      end = line.length
      this.#rest = []
      this.#restLength = 0
    }
    if (end > from && line[end - 1] === 0x0d) end--
    if (end === from) return
    const counts = this.#counts
    counts.lines++
    // Only JSON may hold characters beyond a byte.
    const json = line[from] === 0x7b
    const text = length > LONGEST_LINE ? undefined : line.toString(json ? 'utf8' : 'latin1', from, end)
    const record = text === undefined ? undefined : json ? parseJsonLine(text) : parseTextLine(text)
    if (record !== undefined) {
      counts.records++
      if (!record.valid) counts.withoutRequest++
      records.push(record)
    } else if (text !== undefined && isAgentLine(text)) counts.broken++
    else {
      counts.unreadable++
      if (counts.samples.length < SAMPLES) counts.samples.push(line.toString('latin1', from, Math.min(end, from + SAMPLE_LENGTH)))
    }
  }
}
