import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import { UsageError } from '../terminal/usage-error.ts'
import type { Clients } from './client.ts'
import { type LineCounts, LineReader } from './line-reader.ts'
import type { LogRecord } from './record.ts'

/** The name that stands for the standard input. */
export const STDIN = '-'
/** Bytes of one read. */
const PIECE = 256 * 1024

/** One log, plain or gzip, read a piece at a time. */
export class LogFile {
  readonly name: string
  /** Whether the compressed data ended early or was damaged. Records before that place were read. */
  torn = false
  readonly #input: Input
  readonly #reader: LineReader
  #pieces: AsyncIterator<Buffer> | undefined
  #over = false
  #read = 0

  constructor(name: string, input: Input, counts: LineCounts, clients: Clients) {
    this.name = name
    this.#input = input
    this.#reader = new LineReader(name, counts, clients)
  }

  /** Bytes of the log whose lines were read so far. For a compressed log these are compressed bytes. */
  get position(): number {
    return this.#input.unzipped()?.bytesWritten ?? this.#read
  }

  /**
   * Reads the next piece.
   *
   * @param records receives the records of the piece
   * @returns false at the end of the log
   * @throws UsageError if the log can't be read
   */
  async read(records: LogRecord[]): Promise<boolean> {
    if (this.#over) return false
    try {
      this.#pieces ??= this.#input.stream()[Symbol.asyncIterator]() as AsyncIterator<Buffer>
      const { done, value } = await this.#pieces.next()
      if (done !== true) {
        this.#read += value.length
        this.#reader.write(value, records)
        return true
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (error instanceof UsageError) throw error
      if (code?.startsWith('Z_') !== true) throw unreadable(this.name, error)
      this.torn = true
    }
    this.#over = true
    this.#reader.end(records)
    return false
  }

  /** Stops reading. A pipe that stays open would keep the process alive. */
  close(): void {
    this.#input.close()
  }
}

interface Input {
  stream(): Readable
  /** The decompression, if there is one. */
  unzipped(): Gunzip | undefined
  close(): void
}

/** The size in bytes of all logs together. Undefined if one of them is a stream. */
export async function sizeOf(names: readonly string[]): Promise<number | undefined> {
  let sum = 0
  for (const name of names) {
    if (name === STDIN) return undefined
    const found = await stat(name).catch((error: unknown) => {
      throw unreadable(name, error)
    })
    if (found.isDirectory()) throw new UsageError(`Can't read the log ${JSON.stringify(name)}: it is a folder.`)
    // A device may never end. `/dev/stdin` is a device if it is a terminal.
    if (found.isCharacterDevice() || found.isBlockDevice())
      throw new UsageError(`Can't read the log ${JSON.stringify(name)}: it is a device. Use a file, a pipe, or - for standard input.`)
    // Pipes, such as `<(…)` in a shell.
    if (!found.isFile()) return undefined
    sum += found.size
  }
  return sum
}

/**
 * Opens a log. Its first bytes show whether it is compressed, not its name.
 *
 * @param stdin the stream for `-`
 * @throws UsageError if the log can't be read
 */
export async function openLog(name: string, counts: LineCounts, clients: Clients, stdin: Readable): Promise<LogFile> {
  if (name !== STDIN && (await isPlainFile(name))) {
    const compressed = await beginsAsGzip(name)
    return new LogFile(
      name,
      inputOf(() => createReadStream(name, { highWaterMark: PIECE }), compressed),
      counts,
      clients,
    )
  }
  const stream = name === STDIN ? stdin : createReadStream(name)
  const first = await firstPiece(stream, name)
  return new LogFile(
    name,
    inputOf(() => stream, isGzip(first)),
    counts,
    clients,
  )
}

function inputOf(source: () => Readable, compressed: boolean): Input {
  let opened: Readable | undefined
  let unzipped: Gunzip | undefined
  return {
    stream() {
      opened = source()
      if (!compressed) return opened
      unzipped = createGunzip({ chunkSize: PIECE })
      // `pipe` does not forward errors.
      opened.once('error', (error) => unzipped?.destroy(error))
      return opened.pipe(unzipped)
    },
    unzipped: () => unzipped,
    close: () => void opened?.destroy(),
  }
}

/** Reads the first bytes of a stream, and puts them back. */
async function firstPiece(stream: Readable, name: string): Promise<Buffer | undefined> {
  try {
    await new Promise<void>((resolve, reject) => {
      stream.once('readable', resolve)
      stream.once('end', resolve)
      stream.once('error', reject)
    })
  } catch (error) {
    throw unreadable(name, error)
  }
  const piece = stream.read() as Buffer | null
  if (piece === null) return undefined
  stream.unshift(piece)
  return piece
}

async function isPlainFile(name: string): Promise<boolean> {
  try {
    return (await stat(name)).isFile()
  } catch (error) {
    throw unreadable(name, error)
  }
}

async function beginsAsGzip(name: string): Promise<boolean> {
  try {
    const handle = await open(name)
    try {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0)
      return bytesRead === 2 && isGzip(buffer)
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw unreadable(name, error)
  }
}

function isGzip(bytes: Buffer | undefined): boolean {
  return bytes?.[0] === 0x1f && bytes[1] === 0x8b
}

function unreadable(name: string, error: unknown): UsageError {
  const { code, message } = error as NodeJS.ErrnoException
  const why =
    code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a folder' : code === 'EACCES' ? 'permission denied' : message
  return new UsageError(`Can't read the log ${JSON.stringify(name)}: ${why}.`)
}
