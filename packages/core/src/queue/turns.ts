/** How fast requests have their turns: so many times as fast as they came; and milliseconds after which nobody waits for a turn. */
export interface Pace {
  readonly speed: number
  readonly most: number
}

/**
 * When the requests of a counter have their turns in an overload, where other nodes have some that wait for the same. All nodes go through the
 * time in which requests came at one speed, several times as fast as it passed. So at the moment in which there is no room left each has got
 * as much as came to it, and nobody needs to know how many wait elsewhere. If nodes took as fast as they can it would be chance who gets much, or
 * whoever is nearest.
 *
 *     came     ...|------------- those that wait -------------|
 *               front >>> speed                              now
 */
export class Turns {
  readonly #random: () => number
  /** Those that came before then have had their turns; NaN while nobody has. */
  #front = Number.NaN
  /** Since when there is room; NaN while there is none. */
  #from = Number.NaN
  #speed = 1
  /** After so many milliseconds nobody waits for a turn: the front has come to those that come now, or there is more room than was to be expected. */
  #most = 0
  /** Milliseconds between two turns, and when the next one is. */
  #apart = 0
  #next = 0
  /** When the last one was that got something. */
  #granted = 0
  /** For how long there was room the last time; NaN while nobody knows. */
  #lasted = Number.NaN

  constructor(random: () => number) {
    this.#random = random
  }

  /**
   * There is room, for nobody knows how many.
   *
   * @param requests that wait, at least one
   * @param since when the first of them came
   * @param speed above 1: so many times as fast as requests came they have their turns
   * @param most milliseconds after which nobody is to wait for a turn
   */
  begin(requests: number, since: number, speed: number, most: number, now: number): void {
    if (!(this.#front <= now)) this.#front = since
    this.#from = now
    this.#speed = speed
    this.#apart = (now - this.#front) / (speed * requests)
    // By chance, so that a node with less than one turn gets its part too.
    this.#next = this.#apart * this.#random()
    this.#most = Math.min(most, (now - this.#front) / (speed - 1))
    this.#granted = 0
  }

  /** Whether it goes on: there has been room since it began, as far as is known. */
  get running(): boolean {
    return !Number.isNaN(this.#from)
  }

  /** When the next request has its turn. */
  get next(): number {
    return this.running ? this.#from + Math.min(this.#next, this.#most) : Number.NEGATIVE_INFINITY
  }

  take(): void {
    this.#next += this.#apart
  }

  /** A request that was sent to the store at that time was granted. */
  granted(asked: number): void {
    if (!Number.isNaN(this.#from)) this.#granted = Math.max(this.#granted, asked - this.#from)
  }

  /** There was no room left for whom asked at that time. */
  end(asked: number): void {
    if (Number.isNaN(this.#from)) return
    // Only whoever asks hears of it: there was room at least until the last one that got something, and as long as before as a rule.
    const most = Math.max(this.#granted, asked - this.#from)
    const usual = Number.isNaN(this.#lasted) ? (this.#granted + most) / 2 : this.#lasted
    this.#lasted = Math.min(most, Math.max(this.#granted, usual))
    this.#front = Math.min(this.#front + this.#speed * this.#lasted, this.#from + this.#lasted)
    this.#from = Number.NaN
  }
}
