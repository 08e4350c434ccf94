/** Weight of the last round trip in the average, and round trips after which the average is reliable. */
const WEIGHT = 0.05
const ENOUGH = 20
/** If an average round trip takes more than this fraction of the storeTimeout, slower ones have too little time. */
const PART = 5

/** The store's average time to answer. Warns once if it is too long for the storeTimeout. */
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
    const slow = `The store needs ${Math.ceil(this.#usual)} ms on average, but "storeTimeout" is ${storeTimeout} ms`
    this.#warn(`${slow}. Slower requests fall back to "failMode". Raise "storeTimeout", or move the store closer.`)
  }
}
