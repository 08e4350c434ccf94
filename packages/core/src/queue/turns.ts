/**
 * The pace of turns: `speed` is how many times as fast as requests came they get their turns. After `most` milliseconds no request waits
 * for a turn.
 */
export interface Pace {
  readonly speed: number
  readonly most: number
}

/**
 * Times of the requests of a counter in an overload, if requests of other processes wait for the same capacity. Each process replays the
 * time in which its requests came, at the same speed. The speed is several times as fast as that time passed. So when the capacity is used
 * up, each process got a share that matches its requests, and no process needs to count the requests of the others. If processes took
 * capacity as fast as they can, chance or the distance to the store would decide.
 *
 *     came     ...|----------- waiting requests ------------|
 *               front >>> speed                            now
 */
export class Turns {
  readonly #random: () => number
  /** Requests that came before this time have had their turns. NaN while no request has. */
  #front = Number.NaN
  /** The start of the capacity. NaN while there is none. */
  #from = Number.NaN
  #speed = 1
  /**
   * Milliseconds after which no request waits for a turn. The front has reached the requests that come now, or there is more capacity than
   * expected.
   */
  #most = 0
  /** Milliseconds between two turns, and the time of the next one. It counts from `#from`. */
  #apart = 0
  #next = 0
  /** When the last granted request was sent. It counts from `#from`. */
  #granted = 0
  /** How long capacity lasted the last time, in milliseconds. NaN while unknown. */
  #lasted = Number.NaN

  constructor(random: () => number) {
    this.#random = random
  }

  /**
   * Begins turns because there is capacity. The number of requests for which it lasts is unknown.
   *
   * @param requests waiting requests, at least one
   * @param since when the first of them came
   * @param speed above 1: how many times as fast as requests came they get their turns
   * @param most milliseconds after which no request waits for a turn
   */
  begin(requests: number, since: number, speed: number, most: number, now: number): void {
    if (!(this.#front <= now)) this.#front = since
    this.#from = now
    this.#speed = speed
    this.#apart = (now - this.#front) / (speed * requests)
    // Random, so that a process with less than one turn gets its share too.
    this.#next = this.#apart * this.#random()
    this.#most = Math.min(most, (now - this.#front) / (speed - 1))
    this.#granted = 0
  }

  /** Whether turns are running: there has been capacity since they began, by the counts of this process. */
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

  /**
   * Ends the turns because a request was rejected.
   *
   * @param asked the time when the rejected request was sent to the store
   */
  end(asked: number): void {
    if (Number.isNaN(this.#from)) return
    // The end of the capacity shows only in a rejection. The capacity lasted at least until the last granted request, and usually as long
    // as the time before.
    const most = Math.max(this.#granted, asked - this.#from)
    const usual = Number.isNaN(this.#lasted) ? (this.#granted + most) / 2 : this.#lasted
    this.#lasted = Math.min(most, Math.max(this.#granted, usual))
    this.#front = Math.min(this.#front + this.#speed * this.#lasted, this.#from + this.#lasted)
    this.#from = Number.NaN
  }
}
