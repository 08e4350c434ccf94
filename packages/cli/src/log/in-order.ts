import type { LogRecord } from './record.ts'

/** Records that are held to be put in order: servers log a request when it is answered, so long ones come late. */
const HELD = 16_384

/** Puts records in the order of their times, as far as it can be done with a bounded number of them in memory. */
export class InOrder {
  /** By time; the first `#from` are gone. */
  #held: LogRecord[] = []
  #from = 0
  #last = Number.NEGATIVE_INFINITY
  readonly #most: number
  /** Records that came so late that others were let go before them: they are left out. */
  late = 0

  constructor(most: number = HELD) {
    this.#most = most
  }

  /** @param out gets the records that need not be held any longer */
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

  /** Lets go of all. */
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

/** Records of one second that are held at most. */
const MOST_OF_SECOND = 65_536

/**
 * Spreads the records of logs that tell whole seconds only over their seconds, evenly and in the order of the log. Left where they are they
 * would all come at once, which no real traffic does, and which nodes can't hear of from each other in time.
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

  /** @param more whether further records of the second may come: then half of what is left of it is kept for them */
  #flush(out: LogRecord[], more: boolean): void {
    const records = this.#second
    this.#second = []
    const [{ time: second } = { time: 0 }] = records
    const from = Math.max(this.#from, second)
    const left = (second + 1000 - from) / (more ? 2 : 1)
    const count = records.length
    // Beside records with finer times, these keep theirs.
    for (const [at, record] of records.entries())
      record.time = record.coarse ? from + (left * (at + 0.5)) / count : Math.max(from, record.time)
    records.sort((one, other) => one.time - other.time)
    this.#from = more ? from + left : (records.at(-1) as LogRecord).time
    for (const record of records) out.push(record)
  }
}
