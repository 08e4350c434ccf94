import type { Ordinal } from '../time/intervals.ts'

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

/** The late counts of one interval. */
interface PastInterval {
  readonly counts: Map<string, LateCount>
  /** Counts that wait for a sync from `next` on, among them some that need none any more. */
  waiting: LateCount[]
  next: number
}

/** Counts that need no sync any more and are skipped in one turn of the event loop, at most. */
const MOST_PASSED = 1_000

/**
 * The late counts of one policy. Syncs take them in the order in which they came, however many there are. All counts of an interval are
 * dropped together: while the store is down, as many are kept as came in the intervals that `prune` leaves, and in `limit`.
 */
export class LateCounts {
  readonly #past = new Map<Ordinal, PastInterval>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Whether some wait for a sync. */
  get waiting(): boolean {
    for (const { waiting, next } of this.#past.values()) if (next < waiting.length) return true
    return false
  }

  add(key: string, wireKey: string, ordinal: Ordinal, taken: number, given: number): LateCount {
    let past = this.#past.get(ordinal)
    if (past === undefined) this.#past.set(ordinal, (past = { counts: new Map(), waiting: [], next: 0 }))
    const late: LateCount = { kind: 'late', key, wireKey, ordinal, taken, given, inFlight: false, done: false }
    this.#size -= past.counts.size
    past.counts.set(key, late)
    this.#size += past.counts.size
    past.waiting.push(late)
    return late
  }

  /**
   * Takes the next count that waits for a sync, and marks it as in flight. Undefined if there is none, or the rest is left for a later
   * turn.
   */
  take(): LateCount | undefined {
    let passed = 0
    for (const past of this.#past.values()) {
      for (const { waiting } = past; past.next < waiting.length; ) {
        if (passed === MOST_PASSED) return undefined
        const late = waiting[past.next++] as LateCount
        passed++
        // This one was removed since.
        if (late.done || past.counts.get(late.key) !== late) continue
        late.inFlight = true
        return late
      }
      if (past.next === 0) continue
      past.waiting = []
      past.next = 0
    }
    return undefined
  }

  /** Makes it wait again: its sync failed, or it has changed meanwhile. */
  again(late: LateCount): void {
    late.inFlight = false
    const past = this.#past.get(late.ordinal)
    // Its interval is no longer kept, or its key was reset.
    if (past?.counts.get(late.key) !== late) return
    // Only once at least half of the list was taken, so few items are moved, and seldom.
    if (2 * past.next > past.waiting.length) {
      past.waiting.splice(0, past.next)
      past.next = 0
    }
    past.waiting.push(late)
  }

  /** The store has it. It is removed, unless its interval is `running` or later, in which the key may still count. */
  finish(late: LateCount, running: Ordinal): void {
    late.inFlight = false
    late.done = true
    if (late.ordinal < running && this.find(late.key, late.ordinal) === late) this.remove(late.key, late.ordinal)
  }

  /** A sync of it has returned. `sent` are the counts that it carried. */
  settle(late: LateCount, sent: { readonly taken: number; readonly given: number }, running: Ordinal): void {
    if (late.taken === sent.taken && late.given === sent.given) this.finish(late, running)
    else this.again(late)
  }

  /** As long as the counts of an ended interval were not sent, a refund can still correct them. */
  refund(key: string, ordinal: Ordinal, units: number): void {
    const late = this.find(key, ordinal)
    if (late !== undefined && !late.done) late.given = Math.min(late.taken, late.given + units)
  }

  /** Removes counts that no process needs any more: all intervals before `oldest`. */
  prune(oldest: Ordinal): void {
    for (const [ordinal, { counts }] of this.#past) if (ordinal < oldest || counts.size === 0) this.#drop(ordinal)
  }

  /** Keeps at most this many, or those of one interval: the oldest interval is dropped first. */
  limit(most: number): void {
    while (this.#size > most && this.#past.size > 1) this.#drop(Math.min(...this.#past.keys()) as Ordinal)
  }

  #drop(ordinal: Ordinal): void {
    this.#size -= this.#past.get(ordinal)?.counts.size ?? 0
    this.#past.delete(ordinal)
  }

  has(ordinal: Ordinal): boolean {
    return this.#past.has(ordinal)
  }

  /** Removes a key's counts. */
  remove(key: string, ordinal: Ordinal): LateCount | undefined {
    const late = this.find(key, ordinal)
    if (late !== undefined && this.#past.get(ordinal)?.counts.delete(key)) this.#size--
    return late
  }

  /** Removes a key's counts of all intervals. */
  forget(key: string): void {
    for (const ordinal of this.#past.keys()) this.remove(key, ordinal)
  }

  find(key: string, ordinal: Ordinal): LateCount | undefined {
    return this.#past.get(ordinal)?.counts.get(key)
  }
}
