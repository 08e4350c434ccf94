import type { LogRecord } from './record.ts'

/** Records that are kept for sorting. Servers log a request at its end, so long requests appear late. */
const HELD = 16_384

/** Sorts records by time, with a bounded number of them in memory. */
export class InOrder {
  /** Sorted by time. The first `#from` records are already released. */
  #held: LogRecord[] = []
  #from = 0
  #last = Number.NEGATIVE_INFINITY
  readonly #most: number
  /** Records that are left out, because later ones were already released. */
  late = 0

  constructor(most: number = HELD) {
    this.#most = most
  }

  /** @param out receives the records that need no more sorting */
  add(record: LogRecord, out: LogRecord[]): void {
    const { time } = record
    if (time < this.#last) {
      this.late++
      return
    }
    const held = this.#held
    let at = held.length
    while (at > this.#from && (held[at - 1] as LogRecord).time > time) at--
    if (at === held.length) held.push(record)
    else held.splice(at, 0, record)
    if (held.length - this.#from > this.#most) this.#release(out)
  }

  /** Releases all records. */
  end(out: LogRecord[]): void {
    while (this.#from < this.#held.length) this.#release(out)
  }

  #release(out: LogRecord[]): void {
    const record = this.#held[this.#from++] as LogRecord
    this.#last = record.time
    out.push(record)
    if (this.#from < this.#most) return
    this.#held = this.#held.slice(this.#from)
    this.#from = 0
  }
}

/** The most records of one second that are kept. */
const MOST_OF_SECOND = 65_536

/**
 * Spreads records with whole seconds evenly over their second, in the order of the log. Otherwise all would arrive at the same moment.
 * Real traffic doesn't do this, and processes could not sync in between.
 */
export class Spread {
  #second: LogRecord[] = []
  #from = Number.NEGATIVE_INFINITY

  add(record: LogRecord, out: LogRecord[]): void {
    const [first] = this.#second
    if (first !== undefined && record.time >= first.time + 1000) this.end(out)
    if (!record.coarse && this.#second.length === 0) {
      this.#from = Math.max(this.#from, record.time)
      record.time = this.#from
      out.push(record)
      return
    }
    this.#second.push(record)
    if (this.#second.length >= MOST_OF_SECOND) this.#flush(out, true)
  }

  end(out: LogRecord[]): void {
    if (this.#second.length > 0) this.#flush(out, false)
  }

  /** @param more whether the second may have more records. Half of its remaining time is then kept for them */
  #flush(out: LogRecord[], more: boolean): void {
    const records = this.#second
    this.#second = []
    const [{ time: second } = { time: 0 }] = records
    const from = Math.max(this.#from, second)
    const left = (second + 1000 - from) / (more ? 2 : 1)
    const count = records.length
    // Records with finer times in the same second keep their times.
    for (const [at, record] of records.entries())
      record.time = record.coarse ? from + (left * (at + 0.5)) / count : Math.max(from, record.time)
    records.sort((one, other) => one.time - other.time)
    this.#from = more ? from + left : (records.at(-1) as LogRecord).time
    for (const record of records) out.push(record)
  }
}
