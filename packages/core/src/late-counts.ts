import type { Ordinal } from './time.ts'

/** Counts of a cell that ended before they were sent. They keep their ordinal, whenever they are sent. */
export interface LateCount {
  readonly key: string
  readonly wireKey: string
  readonly ordinal: Ordinal
  taken: number
  given: number
  inFlight: boolean
  done: boolean
}

/** The late counts of one policy: those of an interval lie together, the oldest interval first. */
export class LateCounts {
  readonly #byOrdinal = new Map<Ordinal, Map<string, LateCount>>()

  get size(): number {
    let size = 0
    for (const counts of this.#byOrdinal.values()) size += counts.size
    return size
  }

  add(key: string, wireKey: string, ordinal: Ordinal, taken: number, given: number): LateCount {
    let counts = this.#byOrdinal.get(ordinal)
    if (counts === undefined) this.#byOrdinal.set(ordinal, (counts = new Map()))
    const late: LateCount = { key, wireKey, ordinal, taken, given, inFlight: false, done: false }
    counts.set(key, late)
    return late
  }

  /** The counts that wait for an exchange. */
  *waiting(): Generator<LateCount> {
    for (const counts of this.#byOrdinal.values()) for (const late of counts.values()) if (!late.done && !late.inFlight) yield late
  }

  /** Forgets what was sent, and what nobody counts any more (ordinals before `oldest`). What is of `running` or later may go on. */
  prune(oldest: Ordinal, running: Ordinal): void {
    for (const [ordinal, counts] of this.#byOrdinal) {
      if (ordinal >= oldest && ordinal < running) for (const late of counts.values()) if (late.done) counts.delete(late.key)
      if (ordinal < oldest || counts.size === 0) this.#byOrdinal.delete(ordinal)
    }
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

  find(key: string, ordinal: Ordinal): LateCount | undefined {
    return this.#byOrdinal.get(ordinal)?.get(key)
  }
}
