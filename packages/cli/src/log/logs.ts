import type { Readable } from 'node:stream'
import { type ClientOptions, type ClientSummary, Clients } from './client.ts'
import { InOrder, Spread } from './in-order.ts'
import { type LineCounts, noLines } from './line-reader.ts'
import { type LogFile, openLog, sizeOf } from './log-file.ts'
import type { LogRecord } from './record.ts'

/** Summary of the logs. */
export interface LogSummary extends LineCounts {
  readonly files: readonly string[]
  readonly client: ClientSummary
  /** Requests that are left out, because later requests of their log were already replayed. */
  late: number
  /** Names of logs whose compressed data is torn or damaged. */
  torn: readonly string[]
  /** Times of the first and the last request in milliseconds since the epoch. Undefined without requests. */
  from: number | undefined
  to: number | undefined
}

/** Several logs merged into one, in the order of time. */
export class Logs {
  /** Bytes of all logs together. Undefined if one of them is a stream. */
  readonly size: number | undefined
  readonly #counts: LineCounts
  readonly #files: readonly LogFile[]
  readonly #clients: Clients
  readonly #order = new InOrder()
  #from: number | undefined
  #to: number | undefined

  /** @throws UsageError if one of the logs can't be read */
  static async open(names: readonly string[], stdin: Readable, options: ClientOptions = {}): Promise<Logs> {
    const size = await sizeOf(names)
    const counts = noLines()
    const clients = new Clients(options)
    const files: LogFile[] = []
    for (const name of names) files.push(await openLog(name, counts, clients, stdin))
    return new Logs(files, counts, clients, size)
  }

  private constructor(files: readonly LogFile[], counts: LineCounts, clients: Clients, size: number | undefined) {
    this.#files = files
    this.#counts = counts
    this.#clients = clients
    this.size = size
  }

  /**
   * Bytes of all logs that are done. Thousands of requests are kept for sorting, so they are fewer than the bytes read.
   *
   * @param requests how many requests of `read` are done
   */
  done(requests: number): number {
    const read = this.#files.reduce((sum, { position }) => sum + position, 0)
    return this.#counts.records === 0 ? 0 : Math.min(read, Math.floor((read * requests) / this.#counts.records))
  }

  /** Stops reading all logs. */
  close(): void {
    for (const file of this.#files) file.close()
  }

  get summary(): LogSummary {
    return {
      files: this.#files.map(({ name }) => name),
      ...this.#counts,
      client: this.#clients.summary,
      late: this.#order.late,
      torn: this.#files.filter(({ torn }) => torn).map(({ name }) => name),
      from: this.#from,
      to: this.#to,
    }
  }

  /**
   * The records of all logs by time, in bounded batches.
   *
   * @throws UsageError if a log can't be read any further
   */
  async *read(): AsyncGenerator<readonly LogRecord[]> {
    const order = this.#order
    const spread = new Spread()
    const out = (ordered: readonly LogRecord[]): LogRecord[] => {
      const ready: LogRecord[] = []
      for (const record of ordered) spread.add(record, ready)
      return this.#noted(ready)
    }
    for await (const records of this.#merged()) {
      const ordered: LogRecord[] = []
      for (const record of records) order.add(record, ordered)
      yield out(ordered)
    }
    const rest: LogRecord[] = []
    order.end(rest)
    const last = out(rest)
    spread.end(last)
    yield this.#noted(last)
  }

  #noted(records: LogRecord[]): LogRecord[] {
    this.#from ??= records[0]?.time
    this.#to = records.at(-1)?.time ?? this.#to
    return records
  }

  /** Merges the logs by the times of their next records, so that none is read far ahead. */
  async *#merged(): AsyncGenerator<readonly LogRecord[]> {
    let heads = this.#files.map((file) => ({ file, records: [] as LogRecord[], at: 0, over: false }))
    while (heads.length > 0) {
      for (const head of heads) {
        while (!head.over && head.at === head.records.length) {
          head.records = []
          head.at = 0
          head.over = !(await head.file.read(head.records))
        }
      }
      heads = heads.filter(({ over, at, records }) => !over || at < records.length)
      const batch: LogRecord[] = []
      for (;;) {
        let least: (typeof heads)[number] | undefined
        let time = Number.POSITIVE_INFINITY
        for (const head of heads) {
          const next = head.records[head.at]?.time
          if (next !== undefined && next < time) [least, time] = [head, next]
        }
        if (least === undefined) break
        batch.push(least.records[least.at++] as LogRecord)
        if (least.at === least.records.length && !least.over) break
      }
      if (batch.length > 0) yield batch
    }
  }
}
