/** Weight of the last round trip in the usual one, and round trips after which that is known. */
const WEIGHT = 0.05
const ENOUGH = 20
/** A usual round trip that takes a larger part of the storeTimeout leaves too little for those that are not. */
const PART = 5

/** How long the store usually takes to answer. Warns once if that is too long for the storeTimeout. */
export class UsualTime {
  readonly #warn: (message: string) => void
  #usual = 0
  #answers = 0
  #warned = false

  constructor(warn: (message: string) => void) {
    this.#warn = warn
  }

  /** A request was answered now. Times in milliseconds. */
  took({ sent, storeTimeout }: { readonly sent: number; readonly storeTimeout: number }, now: number): void {
    this.#answers++
    this.#usual += (now - sent - this.#usual) * Math.max(WEIGHT, 1 / this.#answers)
    if (this.#warned || this.#answers < ENOUGH || !(this.#usual > storeTimeout / PART)) return
    this.#warned = true
    const what = `The store needs ${Math.ceil(this.#usual)} ms on average; "storeTimeout" is ${storeTimeout} ms`
    this.#warn(`${what}. Slower requests fall back to "failMode". Raise "storeTimeout", or move the store closer.`)
  }
}
