/** A key's last reset. */
interface Reset {
  readonly epoch: number
  /** Decisions of running cells with a smaller serial number were made before it. */
  readonly serial: number
  /** The monotonic time at which no process has units from before it any more. */
  readonly until: number
}

/** The keys of one policy that were reset lately, by this process or another one. Empty for most policies. */
export class Resets {
  readonly #byId = new Map<string, Reset>()
  /** The last reset of all keys. */
  #all: Omit<Reset, 'until'> = { epoch: 0, serial: 0 }
  #sweepAt = MOST

  get size(): number {
    return this.#byId.size
  }

  /** The last reset of the key or of all keys, or 0. */
  epochOf(id: string): number {
    const { epoch } = this.#all
    return this.#byId.size === 0 ? epoch : Math.max(epoch, this.#byId.get(id)?.epoch ?? 0)
  }

  /** Whether a key was reset after a decision was made by the running cell with this serial number. */
  since(id: string, serial: number): boolean {
    return this.#all.serial > serial || (this.#byId.size > 0 && (this.#byId.get(id)?.serial ?? 0) > serial)
  }

  /** All keys were reset. */
  addAll(epoch: number, serial: number): void {
    this.#all = { epoch, serial }
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

/** The number of resets above which expired ones are removed, and again when twice the remaining number is reached. */
const MOST = 100
/** The most resets that are kept. Beyond it the oldest is dropped, and the next sync of its key returns it again. */
const MOST_KEPT = 250_000
