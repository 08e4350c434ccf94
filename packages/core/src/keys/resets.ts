/** A key's last reset. */
interface Reset {
  readonly epoch: number
  /** The decisions of before it: those of running cells with a smaller serial number. */
  readonly serial: number
  /** When nobody holds units of before it any more, on the monotonic clock. */
  readonly until: number
}

/** The keys of one policy that were reset lately, by this node or another one. Empty for most policies. */
export class Resets {
  readonly #byId = new Map<string, Reset>()
  #sweepAt = MOST

  get size(): number {
    return this.#byId.size
  }

  /** The key's last reset; 0 for none. */
  epochOf(id: string): number {
    return this.#byId.size === 0 ? 0 : (this.#byId.get(id)?.epoch ?? 0)
  }

  /** Whether a key was reset after a decision was made by the running cell with this serial number. */
  since(id: string, serial: number): boolean {
    return this.#byId.size > 0 && (this.#byId.get(id)?.serial ?? 0) > serial
  }

  add(id: string, reset: Reset, now: number): void {
    // The newest last.
    this.#byId.delete(id)
    this.#byId.set(id, reset)
    if (this.size > MOST_KEPT) this.#byId.delete(this.#byId.keys().next().value as string)
    if (this.size <= this.#sweepAt) return
    for (const [one, { until }] of this.#byId) if (until <= now) this.#byId.delete(one)
    this.#sweepAt = Math.max(MOST, 2 * this.size)
  }
}

/** More than this are looked through for those that are over; again when twice as many are left. */
const MOST = 100
/** So many are remembered at most: the oldest goes, and its key's next exchange tells of it again. */
const MOST_KEPT = 250_000
