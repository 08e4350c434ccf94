import type { Ordinal } from '../../time/intervals.ts'

/** Counts of a cell that ended before they were sent. They keep their ordinal, whenever they are sent. */
export interface LateCount {
  readonly kind: 'late'
  readonly key: string
  readonly wireKey: string
  readonly ordinal: Ordinal
  taken: number
  given: number
  inFlight: boolean
  done: boolean
}

/** The late counts of one policy. An exchange takes them in the order in which they came, however many there are. */
export class LateCounts {
  readonly #byOrdinal = new Map<Ordinal, Map<string, LateCount>>()
  /** Those that wait for an exchange from `#next` on, among them some that need none any more. */
  #waiting: LateCount[] = []
  #next = 0

  get size(): number {
    let size = 0
    for (const counts of this.#byOrdinal.values()) size += counts.size
    return size
  }

  add(key: string, wireKey: string, ordinal: Ordinal, taken: number, given: number): LateCount {
    let counts = this.#byOrdinal.get(ordinal)
    if (counts === undefined) this.#byOrdinal.set(ordinal, (counts = new Map()))
    const late: LateCount = { kind: 'late', key, wireKey, ordinal, taken, given, inFlight: false, done: false }
    counts.set(key, late)
    this.#waiting.push(late)
    return late
  }

  /** Takes the next one that waits for an exchange; it is under way from now on. */
  take(): LateCount | undefined {
    while (this.#next < this.#waiting.length) {
      const late = this.#waiting[this.#next++] as LateCount
      // This one was taken out or forgotten since.
      if (late.done || this.find(late.key, late.ordinal) !== late) continue
      late.inFlight = true
      return late
    }
    this.#waiting = []
    this.#next = 0
    return undefined
  }

  /** Makes it wait again: its exchange failed, or it has changed meanwhile. */
  again(late: LateCount): void {
    late.inFlight = false
    // At least half of the list was taken, so few items are moved, and seldom.
    if (2 * this.#next > this.#waiting.length) {
      this.#waiting.splice(0, this.#next)
      this.#next = 0
    }
    this.#waiting.push(late)
  }

  /** The store has it. It is forgotten, unless its interval is `running` or later, in which the key may still count. */
  finish(late: LateCount, running: Ordinal): void {
    late.inFlight = false
    late.done = true
    if (late.ordinal < running && this.find(late.key, late.ordinal) === late) this.#byOrdinal.get(late.ordinal)?.delete(late.key)
  }

  /** An exchange of it has returned; `sent` is what it carried. */
  settle(late: LateCount, sent: { readonly taken: number; readonly given: number }, running: Ordinal): void {
    if (late.taken === sent.taken && late.given === sent.given) this.finish(late, running)
    else this.again(late)
  }

  /** As long as the counts of an interval that is over have not been sent, they can still be corrected. */
  refund(key: string, ordinal: Ordinal, units: number): void {
    const late = this.find(key, ordinal)
    if (late !== undefined && !late.done) late.given = Math.min(late.taken, late.given + units)
  }

  /** Forgets what nobody counts any more: all intervals before `oldest`. */
  prune(oldest: Ordinal): void {
    for (const [ordinal, counts] of this.#byOrdinal) if (ordinal < oldest || counts.size === 0) this.#byOrdinal.delete(ordinal)
  }

  has(ordinal: Ordinal): boolean {
    return this.#byOrdinal.has(ordinal)
  }

  /** Takes a key's counts out. */
  remove(key: string, ordinal: Ordinal): LateCount | undefined {
    const late = this.find(key, ordinal)
    if (late !== undefined) this.#byOrdinal.get(ordinal)?.delete(key)
    return late
  }

  /** Forgets a key's counts of all intervals. */
  forget(key: string): void {
    for (const counts of this.#byOrdinal.values()) counts.delete(key)
  }

  find(key: string, ordinal: Ordinal): LateCount | undefined {
    return this.#byOrdinal.get(ordinal)?.get(key)
  }
}
