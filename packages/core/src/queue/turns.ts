/**
 * When the requests of a counter take their turns in an overload, where other nodes have some that wait for the same: all nodes go through
 * their queues at the same pace, so that until there is no room left each has got as much as waits with it. Whoever asked as fast as it can
 * would leave it to chance who gets much, or to whom is nearest.
 */
export class Turns {
  /** Requests that waited when the room came, and milliseconds in which all of them were to have their turns. */
  #requests = 0
  #during = 0
  #from = Number.NEGATIVE_INFINITY
  /** Turns taken. */
  #taken = 0
  /** The first turn comes after this part of the time between two. */
  #offset = 1 / 2

  /** There is room, for nobody knows how many. */
  begin(requests: number, during: number, now: number): void {
    this.#requests = requests
    this.#during = during
    this.#from = now
    this.#taken = 0
  }

  /** When the next request has its turn. */
  get next(): number {
    if (this.#taken >= this.#requests) return Number.NEGATIVE_INFINITY
    return this.#from + (this.#during * (this.#taken + this.#offset)) / this.#requests
  }

  take(): void {
    this.#taken++
  }

  /** There is no room left. What was still missing to the next turn is made up for when there is some again. */
  end(now: number): void {
    if (this.#requests === 0) return
    const passed = (this.#requests * (now - this.#from)) / this.#during
    this.#offset = Math.min(1, Math.max(0, this.#taken + this.#offset - passed))
    this.#requests = 0
  }
}
