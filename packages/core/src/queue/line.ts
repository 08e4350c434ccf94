import { AcquireError } from './acquire-error.ts'
import { type Amount, add } from './amount.ts'
import { Chain, type Link } from './chain.ts'
import type { Wanted } from './options.ts'
import type { Timed } from './schedule.ts'
import type { Pace, Turns } from './turns.ts'

/** Half of the milliseconds after which one is asked about again that had come to nothing, and as many at most. */
const FIRST_PAUSE = 2.5
export const MOST_PAUSE = 200

/** What a queue reads of a decision. */
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

/** One request that waits. `at` is when its time is over; once it is `held`, when it goes. */
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
  /** What rejected it last. */
  rejected: D | undefined
  /** It was let in, and keeps a pace. */
  held: D | undefined
  /** The counter that holds it, or that the store is asked for, by its id. */
  by: string | undefined
  /** Milliseconds for which it was not asked about again when that had come to nothing; rarely there, as many may wait. */
  declare pause: number | undefined
  /** Milliseconds that it is held beyond the delay of its decision: then it keeps no pace. */
  beyond = 0
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

/** The requests of one priority that wait for a key. */
class Level<D extends Answer> extends Chain<Request<D>> implements Amount {
  readonly priority: number
  units = 0
  unsaid = 0
  /** Those of the next lower priority. */
  lower: Level<D> | undefined

  constructor(priority: number, lower: Level<D> | undefined) {
    super()
    this.priority = priority
    this.lower = lower
  }
}

/** The requests that wait for one key: those of the highest priority first, and of these the first that came. */
export class Line<D extends Answer> implements Link<Line<D>> {
  before: Line<D> | undefined
  after: Line<D> | undefined
  readonly key: string
  /** What it waits for. */
  counter: Counter<D> | undefined
  /** Requests in it, those included that the store is being asked for. */
  size = 0
  /** Until when nobody of it is to be asked about; rarely there, as many keys may wait. */
  declare pausedUntil: number | undefined
  /** Those that it is being asked for; rarely there, as many keys may wait. */
  declare asked: Set<Request<D>> | undefined
  /** Those of the highest priority. A list of them all would take memory of its own: many keys may wait. */
  #highest: Level<D> | undefined

  constructor(key: string) {
    this.key = key
  }

  /** The one that goes next. */
  get first(): Request<D> | undefined {
    for (let level = this.#highest; level !== undefined; level = level.lower) if (level.first !== undefined) return level.first
    return undefined
  }

  /** When the one came that has waited longest. */
  get since(): number {
    let since = Number.POSITIVE_INFINITY
    for (let level = this.#highest; level !== undefined; level = level.lower) since = Math.min(since, level.first?.came ?? since)
    return since
  }

  /** Puts a request to the end of those of its priority; one that was asked for goes back to its place. */
  add(request: Request<D>): void {
    const level = this.#level(request.wanted.priority)
    this.#count(level, request, 1)
    let next: Request<D> | undefined
    if (level.last !== undefined && level.last.number > request.number) {
      next = level.first
      while (next !== undefined && next.number < request.number) next = next.after
    }
    level.insert(request, next)
  }

  remove(request: Request<D>): void {
    const level = this.#level(request.wanted.priority)
    this.#count(level, request, -1)
    level.remove(request)
  }

  /** The store is asked for a request now, or is not any more. */
  ask(request: Request<D>, asked: boolean): void {
    if (asked) (this.asked ??= new Set()).add(request)
    else if (this.asked?.delete(request) === true && this.asked.size === 0) this.asked = undefined
  }

  /**
   * The first of its priority that came before a request, of those for which this is true: one that waits, or that the store is being asked for.
   *
   * @param most that wait are looked at
   */
  findBefore({ number, wanted }: Request<D>, most: number, fits: (request: Request<D>) => boolean): Request<D> | undefined {
    let one = this.#level(wanted.priority).first
    for (let left = most; one !== undefined && one.number < number && left > 0 && !fits(one); left--) one = one.after
    let first = one !== undefined && one.number < number && fits(one) ? one : undefined
    for (const other of this.asked ?? []) {
      if (other.number < (first?.number ?? number) && other.wanted.priority === wanted.priority && fits(other)) first = other
    }
    return first
  }

  /** What those want that a request of this priority has to wait for. Default: all of them. */
  ahead(priority: number = Number.NEGATIVE_INFINITY): Amount {
    const ahead = { units: 0, unsaid: 0 }
    for (let level = this.#highest; level !== undefined && level.priority >= priority; level = level.lower) add(ahead, level, 1)
    return ahead
  }

  #count(level: Level<D>, { wanted: { cost } }: Request<D>, sign: 1 | -1): void {
    const amount = cost === undefined ? ONE : { units: cost, unsaid: 0 }
    add(level, amount, sign)
    if (this.counter?.waiting !== undefined) add(this.counter.waiting, amount, sign)
  }

  #level(priority: number): Level<D> {
    let higher: Level<D> | undefined
    let level = this.#highest
    while (level !== undefined && level.priority > priority) {
      higher = level
      level = level.lower
    }
    if (level?.priority === priority) return level
    const made = new Level<D>(priority, level)
    if (higher === undefined) this.#highest = made
    else higher.lower = made
    return made
  }
}

const ONE: Amount = { units: 0, unsaid: 1 }

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

/** What a counter's id names; the policy is empty where none has decided yet. */
export function named(id: string): { readonly policy: string; readonly key: string } {
  const end = id.indexOf('\u0000')
  return { policy: id.slice(0, end), key: id.slice(end + 1) }
}
