import { UsageError } from '../terminal/usage-error.ts'
import type { Clients } from './client.ts'
import { parseLine, showsRequest } from './line.ts'
import type { LogRecord } from './record.ts'
import { isAgentLine } from './text-line.ts'

/** Counts of the lines of a log. */
export interface LineCounts {
  /** Lines that are not empty. */
  lines: number
  /** Requests that could be read. */
  records: number
  /** Records without an HTTP request, such as TLS bytes or nothing. They count as `GET /`. */
  withoutRequest: number
  /** Lines with only the end of a record that was broken before its user agent. */
  broken: number
  /** Lines that could not be read, and the first few of them, cut. */
  unreadable: number
  readonly samples: string[]
  /** Unreadable lines that show a request, and the first of them. Without them the plan does not represent the log. */
  unknown: number
  firstUnknown: UnknownRequest | undefined
}

/** A request that could not be read. */
export interface UnknownRequest {
  readonly file: string
  /** Line number, from 1. */
  readonly line: number
  /** The missing part. `form`: no known form matches. `length`: the line is longer than 128 KiB. */
  readonly why: 'client' | 'time' | 'form' | 'length'
  /** The line, cut. */
  readonly text: string
}

/** Bytes. A longer line is no request: servers cap a request line at 8 to 64 KB. It is skipped without being kept. */
const LONGEST_LINE = 128 * 1024
const SAMPLES = 3
const SAMPLE_LENGTH = 200
const NEWLINE = 0x0a

export function noLines(): LineCounts {
  return { lines: 0, records: 0, withoutRequest: 0, broken: 0, unreadable: 0, samples: [], unknown: 0, firstUnknown: undefined }
}

/** Reads a log from pieces of any size, and returns its records. Keeps at most one line. */
export class LineReader {
  readonly #file: string
  readonly #counts: LineCounts
  readonly #clients: Clients
  #rest: Buffer[] = []
  #restLength = 0
  /** Lines so far, including empty ones. */
  #number = 0

  /**
   * @param file the log's name
   * @param counts receives the counts of this log's lines
   */
  constructor(file: string, counts: LineCounts, clients: Clients) {
    this.#file = file
    this.#counts = counts
    this.#clients = clients
  }

  /** @param records receives the records of these bytes */
  write(bytes: Buffer, records: LogRecord[]): void {
    let from = this.#behindZeros(bytes, 0)
    for (let end = bytes.indexOf(NEWLINE, from); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      this.#line(bytes, from, end, records)
      from = this.#behindZeros(bytes, end + 1)
    }
    if (from === bytes.length) return
    this.#restLength += bytes.length - from
    // Copies the bytes, so that the piece can be freed.
    if (this.#restLength <= LONGEST_LINE) this.#rest.push(Buffer.from(bytes.subarray(from)))
    else this.#rest.length = Math.min(this.#rest.length, 1)
  }

  /** Ends the log. The rest without a line break is its last line. */
  end(records: LogRecord[]): void {
    if (this.#restLength > 0) this.#line(Buffer.alloc(0), 0, 0, records)
  }

  /** Skips zeros. If a log is truncated while a server writes it, zeros fill the removed part, however long it was. */
  #behindZeros(bytes: Buffer, from: number): number {
    while (this.#restLength === 0 && bytes[from] === 0) from++
    return from
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
    if (this.#number++ === 0) this.#checkEncoding(line, from)
    if (end - from >= 3 && line[from] === 0xef && line[from + 1] === 0xbb && line[from + 2] === 0xbf) from += 3
    while (end > from && (line[end - 1] as number) <= 0x20) end--
    if (from < end) this.#text(line, from, end, length, records)
  }

  /** @param length bytes of the whole line, of which only the first 128 KiB are there */
  #text(line: Buffer, from: number, end: number, length: number, records: LogRecord[]): void {
    const counts = this.#counts
    counts.lines++
    // Only JSON contains UTF-8. In text every byte must be one character.
    const text = length > LONGEST_LINE ? undefined : line.toString(line[from] === 0x7b ? 'utf8' : 'latin1', from, end)
    const record = text === undefined ? undefined : parseLine(text, this.#clients.options)
    const why = record === undefined ? this.#whyNone(text) : this.#take(record, records)
    if (why === 'read') return
    if (text !== undefined && isAgentLine(text)) {
      counts.broken++
      return
    }
    counts.unreadable++
    const sample = line.toString('latin1', from, Math.min(end, from + SAMPLE_LENGTH))
    if (counts.samples.length < SAMPLES) counts.samples.push(sample)
    if (why === undefined) return
    counts.unknown++
    counts.firstUnknown ??= { file: this.#file, line: this.#number, why, text: sample }
  }

  #take(record: LogRecord, records: LogRecord[]): UnknownRequest['why'] | 'read' {
    if (Number.isNaN(record.time)) return 'time'
    const client = this.#clients.of(record)
    if (client === undefined) return 'client'
    record.client = client
    this.#counts.records++
    if (!record.valid) this.#counts.withoutRequest++
    records.push(record)
    return 'read'
  }

  /** @returns undefined if the line shows no request */
  #whyNone(text: string | undefined): UnknownRequest['why'] | undefined {
    if (text === undefined) return 'length'
    return showsRequest(text) ? 'form' : undefined
  }

  /** @throws UsageError for UTF-16, detected by a byte order mark or by the first characters */
  #checkEncoding(line: Buffer, from: number): void {
    const [a, b, c, d] = line.subarray(from, from + 4)
    const marked = (a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)
    if (marked || (a !== 0 && b === 0 && c !== 0 && d === 0) || (a === 0 && b !== 0 && c === 0 && d !== 0))
      throw new UsageError(`The log ${JSON.stringify(this.#file)} is in UTF-16. Convert it: iconv -f utf-16 -t utf-8`)
  }
}
