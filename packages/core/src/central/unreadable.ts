/** After the first answer that says nothing of a key it is not asked about for so long, and at most, in milliseconds. */
const FIRST = 200
const LONGEST = 60_000
/** Keys that are remembered; the oldest goes. */
const MOST = 10_000

/** Keys of which the store can say nothing. They are asked about again after a pause that doubles: what is stored there may last. */
export class Unreadable {
  readonly #keys = new Map<string, { pause: number; until: number }>()

  get any(): boolean {
    return this.#keys.size > 0
  }

  /** Until when a key is not asked about. */
  until(key: string): number {
    return this.#keys.get(key)?.until ?? Number.NEGATIVE_INFINITY
  }

  found(key: string, now: number): void {
    const known = this.#keys.get(key)
    // Several requests may have been under way.
    if (known !== undefined && now < known.until) return
    const pause = known === undefined ? FIRST : Math.min(LONGEST, 2 * known.pause)
    this.#keys.delete(key)
    if (this.#keys.size >= MOST) this.#keys.delete(this.#keys.keys().next().value as string)
    this.#keys.set(key, { pause, until: now + pause })
  }

  read(key: string): void {
    this.#keys.delete(key)
  }

  clear(): void {
    this.#keys.clear()
  }
}
