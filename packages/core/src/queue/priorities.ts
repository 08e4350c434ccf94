import { type Amount, add } from './amount.ts'
import { Chain, type Link } from './chain.ts'
import type { Wanted } from './options.ts'

const ONE: Amount = { units: 0, unsaid: 1 }

/** The part of a request that decides its order. */
export interface Ordered<R> extends Link<R> {
  readonly wanted: Wanted
  /** The order of arrival. */
  readonly number: number
  /** When it came, in milliseconds of the monotonic clock. */
  readonly came: number
}

/** Size of one request. */
export function amountOf({ wanted: { cost } }: { readonly wanted: Wanted }): Amount {
  return cost === undefined ? ONE : { units: cost, unsaid: 0 }
}

/** Whether one request goes before another: a higher priority first, then the earlier one. */
export function goesBefore<R>(one: Ordered<R>, other: Ordered<R>): boolean {
  const [first, second] = [one.wanted.priority, other.wanted.priority]
  return first === second ? one.number < other.number : first > second
}

/** The requests of one priority, in their order. */
class Level<R extends Ordered<R>> extends Chain<R> implements Amount {
  readonly priority: number
  size = 0
  units = 0
  unsaid = 0
  /** The level of the next lower priority. */
  lower: Level<R> | undefined

  constructor(priority: number, lower: Level<R> | undefined) {
    super()
    this.priority = priority
    this.lower = lower
  }
}

/** Requests in the order in which they go: by priority, then by arrival. A list for each priority, because very many lines may exist at a time. */
export class Priorities<R extends Ordered<R>> {
  #highest: Level<R> | undefined

  /** The request that goes next. */
  get first(): R | undefined {
    for (let level = this.#highest; level !== undefined; level = level.lower) if (level.first !== undefined) return level.first
    return undefined
  }

  /** When the longest-waiting request came. Infinity for none. */
  get since(): number {
    let since = Number.POSITIVE_INFINITY
    for (let level = this.#highest; level !== undefined; level = level.lower) since = Math.min(since, level.first?.came ?? since)
    return since
  }

  /** Puts a request behind those of its priority. A request that has been here before gets its old position. */
  add(request: R): void {
    const level = this.#level(request.wanted.priority)
    add(level, amountOf(request), 1)
    level.size++
    let next: R | undefined
    if (level.last !== undefined && level.last.number > request.number) {
      next = level.first
      while (next !== undefined && next.number < request.number) next = next.after
    }
    level.insert(request, next)
  }

  remove(request: R): void {
    const level = this.#level(request.wanted.priority)
    add(level, amountOf(request), -1)
    level.size--
    level.remove(request)
  }

  /**
   * The first request for which `fits` is true.
   *
   * @param most the most requests to check
   * @param before only requests that go before this one
   */
  find(most: number, fits: (request: R) => boolean, before?: R): R | undefined {
    let left = most
    for (let level = this.#highest; level !== undefined; level = level.lower) {
      for (let request = level.first; request !== undefined; request = request.after) {
        if (left-- === 0 || (before !== undefined && !goesBefore(request, before))) return undefined
        if (fits(request)) return request
      }
    }
    return undefined
  }

  /** All requests in their order. */
  get all(): R[] {
    const all: R[] = []
    for (let level = this.#highest; level !== undefined; level = level.lower)
      for (let request = level.first; request !== undefined; request = request.after) all.push(request)
    return all
  }

  /** Size of the requests that go before a new request of this priority. Default: all requests. */
  ahead(priority: number = Number.NEGATIVE_INFINITY): Amount {
    const ahead = { units: 0, unsaid: 0 }
    for (let level = this.#highest; level !== undefined && level.priority >= priority; level = level.lower) add(ahead, level, 1)
    return ahead
  }

  /** Number of requests of this priority or a higher one. Default: all. */
  count(priority: number = Number.NEGATIVE_INFINITY): number {
    let count = 0
    for (let level = this.#highest; level !== undefined && level.priority >= priority; level = level.lower) count += level.size
    return count
  }

  #level(priority: number): Level<R> {
    let higher: Level<R> | undefined
    let level = this.#highest
    while (level !== undefined && level.priority > priority) {
      higher = level
      level = level.lower
    }
    if (level?.priority === priority) return level
    const made = new Level<R>(priority, level)
    if (higher === undefined) this.#highest = made
    else higher.lower = made
    return made
  }
}
