import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UsageError } from '../errors.ts'
import { isAgentLine, type LogRecord, parseLine } from './record.ts'

/** Counts of the lines of a log. */
export interface LogReport {
  /** Lines that are not empty. */
  lines: number
  records: number
  /** Lines with only the end of a record that was broken before its user agent. */
  broken: number
  /** Records without an HTTP request in their request line. */
  withoutRequest: number
  /** Skipped lines that are none of these. */
  skipped: number
  /** Whether the compressed data ended early. Records before that place were read. */
  truncated: boolean
}

/** Characters. A longer line is no request, because servers cap a request line at 8 to 64 KB. It is skipped without being kept. */
const LONGEST_LINE = 128 * 1024

/** Reads a log from pieces of any size, and passes its records on. */
export class LogReader {
  readonly report: LogReport = { lines: 0, records: 0, broken: 0, withoutRequest: 0, skipped: 0, truncated: false }
  readonly #onRecord: (record: LogRecord) => void
  #rest = ''
  #tooLong = false

  constructor(onRecord: (record: LogRecord) => void) {
    this.#onRecord = onRecord
  }

  write(bytes: Buffer): void {
    const text = this.#rest + bytes.toString('latin1')
    let from = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      this.#line(text.slice(from, end))
      from = end + 1
    }
    this.#rest = text.slice(from)
    if (this.#rest.length > LONGEST_LINE) {
      this.#tooLong = true
      this.#rest = ''
    }
  }

  end(): void {
    if (this.#rest !== '' || this.#tooLong) this.#line(this.#rest)
    this.#rest = ''
  }

  #line(raw: string): void {
    const tooLong = this.#tooLong
    this.#tooLong = false
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
    if (line === '' && !tooLong) return
    const report = this.report
    report.lines++
    const readable = !tooLong && line.length <= LONGEST_LINE
    const record = readable ? parseLine(line) : undefined
    if (record !== undefined) {
      report.records++
      if (record.method === undefined) report.withoutRequest++
      this.#onRecord(record)
    } else if (readable && isAgentLine(line)) report.broken++
    else report.skipped++
  }
}

/**
 * Reads a log file, plain or gzip, and passes its records on one by one, so that the size of the log doesn't matter. The first bytes show
 * whether it is compressed, not the name.
 *
 * @throws UsageError if the file can't be read
 */
export async function readLog(file: string, onRecord: (record: LogRecord) => void): Promise<LogReport> {
  const reader = new LogReader(onRecord)
  try {
    const compressed = await isGzip(file)
    const source = createReadStream(file)
    const stream: Readable = compressed ? source.pipe(createGunzip()) : source
    // `pipe` does not forward errors.
    if (compressed) source.once('error', (error) => stream.destroy(error))
    for await (const chunk of stream) reader.write(chunk as Buffer)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'Z_BUF_ERROR') reader.report.truncated = true
    else throw new UsageError(`cannot read the log ${JSON.stringify(file)}: ${reasonOf(code, error)}`)
  }
  reader.end()
  return reader.report
}

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b
  } finally {
    await handle.close()
  }
}

function reasonOf(code: string | undefined, error: unknown): string {
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EISDIR') return 'it is a folder'
  if (code === 'EACCES') return 'permission denied'
  if (code?.startsWith('Z_')) return 'its gzip data is damaged'
  return error instanceof Error ? error.message : String(error)
}
