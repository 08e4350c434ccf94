/** Random numbers from a seed, so that a run can be repeated. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** A number from 0 to below 1, uniformly distributed (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  /** A whole number from 0 to `size` - 1. */
  below(size: number): number {
    return Math.floor(this.next() * size)
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T
  }

  /** Returns true with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability
  }

  bytes(size: number): Buffer {
    return Buffer.from(Array.from({ length: size }, () => this.below(256)))
  }
}
