import { type Account, keyBytes, Tally } from './account.ts'

/**
 * Values by key in two maps: an entry that is used moves to the younger map, and once per ttl the older map is dropped and the younger
 * takes its place. So a key is forgotten between one and two ttls after its last use, without a timer or a scan.
 */
export class Generations<Kept> {
  #young = new Map<string, Kept>()
  #old = new Map<string, Kept>()
  #youngTally = new Tally()
  #oldTally = new Tally()
  #swappedAt: number
  #ttl = 0

  constructor(monotonic: number) {
    this.#swappedAt = monotonic
  }

  /** The number of keys. */
  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): Kept | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  /** @param ttl milliseconds. The longest ttl counts */
  keepFor(ttl: number): void {
    if (ttl > this.#ttl) this.#ttl = ttl
  }

  touch(key: string, kept: Kept): void {
    this.#old.delete(key)
    this.#young.set(key, kept)
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }

  *[Symbol.iterator](): Generator<[key: string, kept: Kept]> {
    yield* this.#young
    yield* this.#old
  }

  /**
   * Takes the memory for an addition to a key. An account that moves a key to the younger map pays for all of it.
   *
   * @param more bytes that are added
   * @param kept bytes of the value so far, without the key
   */
  takeRoom(key: string, more: number, kept: number, account: Account): boolean {
    const bytes = more + (this.#young.has(key) ? 0 : keyBytes(key) + kept)
    if (bytes === 0) return true
    if (!account.take(bytes)) return false
    this.#youngTally.note(account, bytes)
    return true
  }

  sweep(monotonic: number): void {
    if (monotonic - this.#swappedAt <= this.#ttl) return
    this.#oldTally.release()
    // After a long silence the younger keys have expired as well.
    if (monotonic - this.#swappedAt > 2 * this.#ttl) {
      this.#youngTally.release()
      this.#young = new Map()
    }
    this.#old = this.#young
    this.#oldTally = this.#youngTally
    this.#young = new Map()
    this.#youngTally = new Tally()
    this.#swappedAt = monotonic
  }
}
