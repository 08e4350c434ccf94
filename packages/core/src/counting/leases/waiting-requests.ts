import type { Reserved, ReserveRequest } from '../../algorithms/reservations.ts'

/** The most unused items before the first request. Then the list is cut, whose cost is in proportion to the items removed since. */
const MOST_BEHIND = 1_024

/**
 * Requests of one key that wait for units, in the order in which they came. All have the same timeout, so decided ones are the first ones.
 * Each has a number, by which a lease request marks the requests that it is for.
 */
export class WaitingRequests {
  #list: ReserveRequest[] = []
  /** Resolves the promises of requests that are not decided. Undefined without any, because most keys have none. */
  #answers: Map<ReserveRequest, (reserved: Reserved | undefined) => void> | undefined
  #first = 0
  /** The number of the first item in the list. */
  #base = 0
  #units = 0

  /** Units that they need. Requests that were decided meanwhile need none. */
  get units(): number {
    return this.first === undefined ? 0 : this.#units
  }

  /** The number of the next request that comes. */
  get end(): number {
    return this.#base + this.#list.length
  }

  /** The number of the request that waits longest. */
  get begin(): number {
    return this.#base + this.#first
  }

  /** Resolves when `answer` was called. */
  add(request: ReserveRequest): Promise<Reserved | undefined> {
    this.#list.push(request)
    this.#units += request.units
    const answers = (this.#answers ??= new Map())
    return new Promise((resolve) => answers.set(request, resolve))
  }

  /** Decides a request, unless it is decided. If it stays in the list, it is dropped when its turn comes. */
  answer(request: ReserveRequest, reserved?: Reserved): void {
    const answers = this.#answers
    answers?.get(request)?.(reserved)
    if (answers?.delete(request) === true && answers.size === 0) this.#answers = undefined
  }

  /** The request that waits longest. Undefined without any. */
  get first(): ReserveRequest | undefined {
    for (let request = this.#list[this.#first]; request !== undefined; request = this.#list[this.#first]) {
      if (this.#waits(request)) return request
      this.shift()
    }
    return undefined
  }

  /** Removes the request that waits longest. */
  shift(): void {
    const request = this.#list[this.#first]
    if (request === undefined) return
    this.#units -= request.units
    this.#first++
    if (this.#first === this.#list.length) this.#clear()
    else if (this.#first > MOST_BEHIND && 2 * this.#first > this.#list.length) {
      this.#list = this.#list.slice(this.#first)
      this.#base += this.#first
      this.#first = 0
    }
  }

  /** Removes requests whose number is below `end` and whose need is `unmet`, and returns them. */
  takeUnmet(end: number, unmet: (request: ReserveRequest) => boolean): ReserveRequest[] {
    const taken: ReserveRequest[] = []
    const to = Math.min(this.#list.length, end - this.#base)
    let place = to
    // The remaining ones move up to the end of their part, so that later requests keep their numbers.
    for (let from = to - 1; from >= this.#first; from--) {
      const request = this.#list[from] as ReserveRequest
      if (this.#waits(request) && !unmet(request)) this.#list[--place] = request
      else {
        this.#units -= request.units
        if (this.#waits(request)) taken.push(request)
      }
    }
    if (to > this.#first) this.#first = place
    if (this.#first === this.#list.length) this.#clear()
    return taken.reverse()
  }

  #waits(request: ReserveRequest): boolean {
    return this.#answers?.has(request) === true
  }

  #clear(): void {
    this.#base += this.#list.length
    this.#list = []
    this.#first = 0
    this.#units = 0
  }
}
