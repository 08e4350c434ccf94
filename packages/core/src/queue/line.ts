import { AcquireError } from './acquire-error.ts'
import { type Amount, add } from './amount.ts'
import { Chain, type Link } from './chain.ts'
import type { Wanted } from './options.ts'
import { amountOf, goesBefore, Priorities } from './priorities.ts'
import type { Reservation, Reservations } from './reservations.ts'
import type { Timed } from './schedule.ts'
import type { Pace, Turns } from './turns.ts'

/** Half of the milliseconds after which one is asked about again that had come to nothing, and as many at most. */
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

/** As a `Gate`. */
interface Teller {
  ended(allowed: boolean): void
}

/** One request that waits. `at` is when its time is over. */
export class Request<D extends Answer> implements Link<Request<D>>, Timed {
  before: Request<D> | undefined
  after: Request<D> | undefined
  at: number
  place = -1
  readonly key: string
  readonly wanted: Wanted
  /** Requests come in this order. */
  readonly number: number
  readonly #resolve: (decision: D) => void
  readonly #reject: (error: unknown) => void
  /** Is told what became of it. */
  readonly #teller: Teller | undefined
  /** The others that wait for its key: while it waits, or the store is being asked for it. */
  line: Line<D> | undefined
  /** Whether the store is being asked for it. */
  asked = false
  /** With which others; rarely there, as many may wait. */
  declare group: { readonly requests: Request<D>[] } | undefined
  /** Its last rejection. */
  rejected: D | undefined
  /** The reservations of which it uses one, while that is not due. */
  reservations: Reservations<D, Request<D>> | undefined
  /** The reservation that no other request may use. */
  own: Reservation<D, Request<D>> | undefined
  /** Its decision while the other policies decide; rarely set, because very many requests may wait. */
  declare deciding: D | undefined
  /** The counter that the store is asked for, by its id. */
  by: string | undefined
  /** Milliseconds for which it was not asked about again when that had come to nothing; rarely there, as many may wait. */
  declare pause: number | undefined
  onAbort: (() => void) | undefined
  /** Whether it counts among those that wait. */
  entered = false
  settled = false
  /** When it came, on the monotonic clock; whole milliseconds, as small numbers take no memory of their own. */
  readonly came: number

  constructor(
    key: string,
    wanted: Wanted,
    number: number,
    now: number,
    resolve: (decision: D) => void,
    reject: (error: unknown) => void,
    teller?: Teller,
  ) {
    this.key = key
    this.wanted = wanted
    this.number = number
    this.at = now + wanted.timeout
    this.came = Math.floor(now)
    this.#resolve = resolve
    this.#reject = reject
    this.#teller = teller
  }

  /** Returns how long it is to wait before it is asked about again, each time twice as long. */
  lengthenPause(): number {
    return (this.pause = Math.min(2 * (this.pause ?? FIRST_PAUSE), MOST_PAUSE))
  }

  resolve(decision: D): void {
    this.#teller?.ended(decision.allowed)
    this.#resolve(decision)
  }

  reject(error: unknown): void {
    if (error instanceof AcquireError && error.reason !== 'aborted') this.#teller?.ended(false)
    this.#reject(error)
  }
}

/** The requests that wait for one key: those of the highest priority first, and of these the first that came. */
export class Line<D extends Answer> implements Link<Line<D>> {
  before: Line<D> | undefined
  after: Line<D> | undefined
  readonly key: string
  /** The counter that it waits for. */
  counter: Counter<D> | undefined
  /** Requests in it, those included that the store is being asked for. */
  size = 0
  /** Until when nobody of it is to be asked about; rarely there, as many keys may wait. */
  declare pausedUntil: number | undefined
  /** Those that it is being asked for; rarely there, as many keys may wait. */
  declare asked: Set<Request<D>> | undefined
  readonly #requests: Priorities<Request<D>> = new Priorities()

  constructor(key: string) {
    this.key = key
  }

  /** The one that goes next. */
  get first(): Request<D> | undefined {
    return this.#requests.first
  }

  /** When the one came that has waited longest. */
  get since(): number {
    return this.#requests.since
  }

  /** Puts a request to the end of those of its priority; one that was asked for goes back to its place. */
  add(request: Request<D>): void {
    this.#requests.add(request)
    if (this.counter?.waiting !== undefined) add(this.counter.waiting, amountOf(request), 1)
  }

  remove(request: Request<D>): void {
    this.#requests.remove(request)
    if (this.counter?.waiting !== undefined) add(this.counter.waiting, amountOf(request), -1)
  }

  /** The store is asked for a request now, or is not any more. */
  ask(request: Request<D>, asked: boolean): void {
    if (asked) (this.asked ??= new Set()).add(request)
    else if (this.asked?.delete(request) === true && this.asked.size === 0) this.asked = undefined
  }

  /**
   * The first of those that go before a request for which this is true: one that waits, or that the store is being asked for.
   *
   * @param most that wait are looked at
   */
  findBefore(request: Request<D>, most: number, fits: (request: Request<D>) => boolean): Request<D> | undefined {
    let first = this.#requests.find(most, fits, request)
    for (const other of this.asked ?? []) if (goesBefore(other, first ?? request) && fits(other)) first = other
    return first
  }

  /** Units of the requests that a request of this priority has to wait for. Default: of all. */
  ahead(priority?: number): Amount {
    return this.#requests.ahead(priority)
  }
}

/**
 * A counter of a policy that rejected requests, and the keys whose requests wait for it, one after another: several keys where the
 * policy counts them together. `at` is when it has room for the first of them.
 */
export class Counter<D extends Answer> implements Timed {
  at = 0
  place = -1
  readonly id: string
  readonly policy: string
  readonly lines: Chain<Line<D>> = new Chain()
  /** Requests that the store is being asked for. */
  asked = 0
  /** Milliseconds for which the store was not asked again when it had last not granted in time; rarely there, as many keys may wait. */
  declare pause: number | undefined
  /** Those of them that were let in since there is room, and how many it were the last time there was. */
  got = 0
  gotBefore = 0
  /** There was no room left for long, and nobody has had a turn since: at this pace they have them then. */
  pace: Pace | undefined
  turns: Turns | undefined
  /** How much waits for it, the store being asked for none of that; where somebody has to know. */
  waiting: Amount | undefined

  constructor(id: string, policy: string) {
    this.id = id
    this.policy = policy
  }

  /** A line waits for it, after the others. */
  put(line: Line<D>): void {
    line.counter = this
    this.lines.push(line)
    if (this.waiting !== undefined) add(this.waiting, line.ahead(), 1)
  }

  /** A line waits for it no more. */
  takeOut(line: Line<D>): void {
    this.lines.remove(line)
    line.counter = undefined
    if (this.waiting !== undefined) add(this.waiting, line.ahead(), -1)
  }

  /** There is no order among those that open at the same time. */
  get number(): number {
    return 0
  }

  /** How much waits for it. From now on that is kept up. */
  get amount(): Amount {
    if (this.waiting === undefined) {
      this.waiting = { units: 0, unsaid: 0 }
      for (let line = this.lines.first; line !== undefined; line = line.after) add(this.waiting, line.ahead(), 1)
    }
    return this.waiting
  }
}

/**
 * Milliseconds after which a request may go that was rejected; infinite where nobody knows, since requests in flight have to end: then
 * it goes on when it is told of that.
 */
export function opensIn({ retryAfterMs }: Pick<Answer, 'retryAfterMs'>): number {
  return retryAfterMs === 0 ? Number.POSITIVE_INFINITY : retryAfterMs
}

/** Names the counter of a policy that decided about a key. */
export function counterId({ policy, key }: Pick<Answer, 'policy' | 'key'>): string {
  return `${policy?.name ?? ''}\u0000${key}`
}

/** The policy and key of a counter's id; the policy is empty if none has decided yet. */
export function named(id: string): { readonly policy: string; readonly key: string } {
  const end = id.indexOf('\u0000')
  return { policy: id.slice(0, end), key: id.slice(end + 1) }
}
