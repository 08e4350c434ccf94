/**
 * Seeded randomness: xoshiro128** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 2021).
 * splitmix32 fills its state. It is fast and small, and its period (2^128 - 1) is long enough for any simulation.
 */
export class SeededRandom {
  readonly #seed: string
  #a: number
  #b: number
  #c: number
  #d: number

  /** @param seed any text or number. The same seed gives the same numbers, on every machine */
  constructor(seed: string | number) {
    this.#seed = String(seed)
    const next = splitmix32(hash(this.#seed))
    this.#a = next()
    this.#b = next()
    this.#c = next()
    // The generator can't leave a state of zeros.
    this.#d = next() | 1
  }

  /** Uniform in [0, 1), in steps of 2^-32. */
  next(): number {
    const scrambled = Math.imul(this.#b, 5)
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0
    const shifted = this.#b << 9
    this.#c ^= this.#a
    this.#d ^= this.#b
    this.#b ^= this.#c
    this.#a ^= this.#d
    this.#c ^= shifted
    this.#d = (this.#d << 11) | (this.#d >>> 21)
    return result / 4_294_967_296
  }

  /** A whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  /** Exponentially distributed with mean 1: the gap between events of a Poisson process of rate 1. */
  exponential(): number {
    return -Math.log(1 - this.next())
  }

  /** Normally distributed with mean 0 and deviation 1 (Box and Muller's transform). */
  normal(): number {
    return Math.sqrt(2 * this.exponential()) * Math.cos(2 * Math.PI * this.next())
  }

  /**
   * Makes a separate stream for one purpose. It depends only on the seed and the purpose, so that a new consumer of random numbers
   * changes nothing for the others.
   */
  stream(purpose: string | number): SeededRandom {
    return new SeededRandom(`${this.#seed}/${purpose}`)
  }
}

/** FNV-1a over UTF-16 code units, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  return value
}

function splitmix32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return mixed ^ (mixed >>> 15)
  }
}
