import { AcquireError } from './acquire-error.ts'
import { type Amount, add } from './amount.ts'
import { Chain, type Link } from './chain.ts'
import type { Wanted } from './options.ts'
import { amountOf, goesBefore, Priorities } from './priorities.ts'
import type { Reservation, Reservations } from './reservations.ts'
import type { Timed } from './schedule.ts'
import type { Pace, Turns } from './turns.ts'

/**
 * Half of the first pause, in milliseconds, after which a request that was not granted is tried again. `MOST_PAUSE` is the longest pause.
 */
const FIRST_PAUSE = 2.5
export const MOST_PAUSE = 200

/** The part of a decision that the queue reads. */
export interface Answer {
  readonly allowed: boolean
  readonly retryAfterMs: number
  readonly delayMs: number
  readonly remaining: number
  readonly key: string
  readonly policy: { readonly name: string } | undefined
  readonly parts: readonly { readonly allowed: boolean; readonly key: string; readonly policy: { readonly name: string } | undefined }[]
}

/** One waiting request. `at` is its timeout, on the monotonic clock. */
export class Request<D extends Answer> implements Link<Request<D>>, Timed {
  before: Request<D> | undefined
  after: Request<D> | undefined
  at: number
  place = -1
  readonly key: string
  readonly wanted: Wanted
  /** The order of arrival. */
  readonly number: number
  readonly #resolve: (decision: D) => void
  readonly #reject: (error: unknown) => void
  /** Counts the request as allowed or rejected. */
  readonly #ended: ((allowed: boolean) => void) | undefined
  /** The line of its key, while the request waits or is at the store. */
  line: Line<D> | undefined
  /** The requests in the same call to the store. Declared without a value to save memory, because many requests may wait. */
  declare group: { readonly requests: Request<D>[] } | undefined
  /** Its last rejection. */
  rejected: D | undefined
  /** The reservations of its counter, until it uses one of them. */
  reservations: Reservations<D, Request<D>> | undefined
  /** The reservation that no other request may use. */
  own: Reservation<D, Request<D>> | undefined
  /** Its decision while the other policies decide. Declared without a value to save memory, because many requests may wait. */
  declare deciding: D | undefined
  /** The id of the counter in the call to the store, while it is at the store. */
  by: string | undefined
  /** The last pause before a new try, in milliseconds. Declared without a value to save memory, because many requests may wait. */
  declare pause: number | undefined
  onAbort: (() => void) | undefined
  /** Whether it counts as waiting. */
  entered = false
  settled = false
  /** When it came, on the monotonic clock. Whole milliseconds, because small integers need no memory of their own. */
  readonly came: number

  constructor(
    key: string,
    wanted: Wanted,
    number: number,
    now: number,
    resolve: (decision: D) => void,
    reject: (error: unknown) => void,
    ended?: (allowed: boolean) => void,
  ) {
    this.key = key
    this.wanted = wanted
    this.number = number
    this.at = now + wanted.timeout
    this.came = Math.floor(now)
    this.#resolve = resolve
    this.#reject = reject
    this.#ended = ended
  }

  /** Returns the milliseconds to wait before a new try. Each pause is twice as long as the one before. */
  lengthenPause(): number {
    return (this.pause = Math.min(2 * (this.pause ?? FIRST_PAUSE), MOST_PAUSE))
  }

  resolve(decision: D): void {
    this.#ended?.(decision.allowed)
    this.#resolve(decision)
  }

  reject(error: unknown): void {
    if (error instanceof AcquireError && error.reason !== 'aborted') this.#ended?.(false)
    this.#reject(error)
  }
}

/** The requests that wait for one key, by priority and then by arrival. */
export class Line<D extends Answer> implements Link<Line<D>> {
  before: Line<D> | undefined
  after: Line<D> | undefined
  readonly key: string
  /** The counter that the line waits for. */
  counter: Counter<D> | undefined
  /** Number of requests, including requests at the store. */
  size = 0
  /** No request of the line is tried before this time. Declared without a value to save memory, because many keys may wait. */
  declare pausedUntil: number | undefined
  /** The requests at the store. Declared without a value to save memory, because many keys may wait. */
  declare asked: Set<Request<D>> | undefined
  readonly #requests: Priorities<Request<D>> = new Priorities()

  constructor(key: string) {
    this.key = key
  }

  /** The next request. */
  get first(): Request<D> | undefined {
    return this.#requests.first
  }

  /** When the longest-waiting request came. */
  get since(): number {
    return this.#requests.since
  }

  /** Puts a request behind those of its priority. A request that returns from the store gets its old position. */
  add(request: Request<D>): void {
    this.#requests.add(request)
    if (this.counter?.waiting !== undefined) add(this.counter.waiting, amountOf(request), 1)
  }

  remove(request: Request<D>): void {
    this.#requests.remove(request)
    if (this.counter?.waiting !== undefined) add(this.counter.waiting, amountOf(request), -1)
  }

  /** Adds a request to the ones at the store, or removes it. */
  ask(request: Request<D>, asked: boolean): void {
    if (asked) (this.asked ??= new Set()).add(request)
    else if (this.asked?.delete(request) === true && this.asked.size === 0) this.asked = undefined
  }

  /**
   * The first request before this one for which `fits` is true. It may wait, or be at the store.
   *
   * @param most the most waiting requests to check
   */
  findBefore(request: Request<D>, most: number, fits: (request: Request<D>) => boolean): Request<D> | undefined {
    let first = this.#requests.find(most, fits, request)
    for (const other of this.asked ?? []) if (goesBefore(other, first ?? request) && fits(other)) first = other
    return first
  }

  /** Size of the requests that go before a new request of this priority. Default: all requests. */
  ahead(priority?: number): Amount {
    return this.#requests.ahead(priority)
  }
}

/**
 * A counter of a policy that rejected requests, and the lines that wait for it. There are several lines if the policy counts several keys
 * together. `at` is when it has capacity for the first of them.
 */
export class Counter<D extends Answer> implements Timed {
  at = 0
  place = -1
  readonly id: string
  readonly policy: string
  readonly lines: Chain<Line<D>> = new Chain()
  /** Number of its requests at the store. */
  asked = 0
  /**
   * The last pause after the store did not grant in time, in milliseconds. Declared without a value to save memory, because many keys may
   * wait.
   */
  declare pause: number | undefined
  /** Requests that the store granted since the counter has capacity, and the number of the time before. */
  got = 0
  gotBefore = 0
  /** Set when the counter was full for long and no request has had a turn since. Turns begin at this pace. */
  pace: Pace | undefined
  turns: Turns | undefined
  /** Size of the waiting requests without the ones at the store. Undefined until it is first needed. */
  waiting: Amount | undefined

  constructor(id: string, policy: string) {
    this.id = id
    this.policy = policy
  }

  /** Puts a line behind the others. */
  put(line: Line<D>): void {
    line.counter = this
    this.lines.push(line)
    if (this.waiting !== undefined) add(this.waiting, line.ahead(), 1)
  }

  /** Removes a line. */
  takeOut(line: Line<D>): void {
    this.lines.remove(line)
    line.counter = undefined
    if (this.waiting !== undefined) add(this.waiting, line.ahead(), -1)
  }

  /** Counters that open at the same time have no order. */
  get number(): number {
    return 0
  }

  /** Size of the waiting requests. After the first call it is kept up to date. */
  get amount(): Amount {
    if (this.waiting === undefined) {
      this.waiting = { units: 0, unsaid: 0 }
      for (let line = this.lines.first; line !== undefined; line = line.after) add(this.waiting, line.ahead(), 1)
    }
    return this.waiting
  }
}

/**
 * Milliseconds after which a rejected request may try again. Infinity if the time is unknown because requests in flight must end first.
 * Then a `nudge` or a release continues with it.
 */
export function opensIn({ retryAfterMs }: Pick<Answer, 'retryAfterMs'>): number {
  return retryAfterMs === 0 ? Number.POSITIVE_INFINITY : retryAfterMs
}

/** The id of the counter that decided about a key. */
export function counterId({ policy, key }: Pick<Answer, 'policy' | 'key'>): string {
  return `${policy?.name ?? ''}\u0000${key}`
}

/** The policy and key of a counter's id. The policy is empty if none has decided yet. */
export function named(id: string): { readonly policy: string; readonly key: string } {
  const end = id.indexOf('\u0000')
  return { policy: id.slice(0, end), key: id.slice(end + 1) }
}
