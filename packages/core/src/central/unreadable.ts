/** Pause of a key after its first unreadable answer, and the longest pause, in milliseconds. */
const FIRST = 200
const LONGEST = 60_000
/** The most keys to remember. The oldest is dropped. */
const MOST = 10_000

/** Keys whose state the store can't read. They are tried again after a pause that doubles, because the state may stay. */
export class Unreadable {
  readonly #keys = new Map<string, { pause: number; until: number }>()

  get any(): boolean {
    return this.#keys.size > 0
  }

  /** Until when a key is not tried. */
  until(key: string): number {
    return this.#keys.get(key)?.until ?? Number.NEGATIVE_INFINITY
  }

  found(key: string, now: number): void {
    const known = this.#keys.get(key)
    // Several requests may have been in flight.
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
