import { isLike } from './options.ts'
import { goesBefore, type Ordered, Priorities } from './priorities.ts'
import type { Timed } from './schedule.ts'

const ALL = Number.POSITIVE_INFINITY

/** The part of a request that reservations need. */
export interface Reservable<D, R> extends Ordered<R> {
  readonly key: string
  /** Whether it has ended. */
  readonly settled: boolean
  /** The reservation that no other request may use. */
  own: Reservation<D, R> | undefined
}

/** Units that are already counted, and may be used from `at` on. */
export interface Reservation<D, R> {
  /** On the monotonic clock, milliseconds. */
  at: number
  readonly decision: D
  /** The request that it was made for. Any interchangeable request may use it. */
  readonly request: R
  /** Whether only that request may use it, because its caller already received the time. */
  readonly own: boolean
  /** Milliseconds from the end of the decision's delay to `at`. Above 0 the reservation has no pace. */
  readonly beyond: number
}

/** A request whose reservation is due, while the other policies decide. */
export interface Deciding<R> {
  request: R
}

/**
 * The reservations of one counter that are not due yet, soonest first, and as many requests that wait for them. A reservation belongs to no
 * request. When it is due, the first interchangeable request uses it. If a request leaves, the last reservation is cancelled.
 *
 *     reservations   10 ms   30 ms   50 ms
 *     requests       urgent  first   second
 */
export class Reservations<D, R extends Reservable<D, R>> implements Timed {
  readonly id: string
  readonly policy: string
  /** When the first one is due. */
  at = 0
  place = -1
  /** End of the late reservations, which are used one by one at their pace. */
  lateUntil = 0
  /** Requests whose reservation is due, while the other policies decide. */
  readonly deciding: Set<Deciding<R>> = new Set()
  readonly #list: Reservation<D, R>[] = []
  readonly #requests: Priorities<R> = new Priorities()

  /** Whether other processes reserve in between. Then requests with different costs have no order. */
  readonly #shared: boolean

  constructor(id: string, policy: string, shared: boolean) {
    this.id = id
    this.policy = policy
    this.#shared = shared
  }

  get size(): number {
    return this.#list.length + this.deciding.size
  }

  get first(): Reservation<D, R> | undefined {
    return this.#list[0]
  }

  get last(): Reservation<D, R> | undefined {
    return this.#list.at(-1)
  }

  /** Orders counters whose reservations are due at the same time: by the first request. */
  get number(): number {
    return this.first?.request.number ?? 0
  }

  /** When the longest-waiting request came. */
  get since(): number {
    const others = [this.first?.request, ...[...this.deciding].map(({ request }) => request)]
    return Math.min(this.#requests.since, ...others.map((request) => request?.came ?? Number.POSITIVE_INFINITY))
  }

  /** Adds a reservation and the request that it is for. */
  add(reservation: Reservation<D, R>): void {
    const { request, own } = reservation
    request.own = own ? reservation : undefined
    if (!own) this.#requests.add(request)
    this.#insert(reservation)
  }

  /** When a new request is expected to be allowed. */
  expected(request: R): number {
    const before = this.#requests.count(request.wanted.priority)
    if (before === this.#requests.count()) return this.#lastFor(request)?.at ?? Number.NEGATIVE_INFINITY
    let left = before
    return this.#list.find(({ own }) => !own && --left === 0)?.at ?? Number.NEGATIVE_INFINITY
  }

  /** Whether an interchangeable request goes before this one. */
  hasBefore(request: R): boolean {
    return this.#list.length > 0 && this.#first(request, request) !== undefined
  }

  /** Removes a reservation that is due or unneeded. */
  remove(reservation: Reservation<D, R>): void {
    this.#list.splice(this.#list.indexOf(reservation), 1)
  }

  /** Removes and returns the request that uses a due reservation. There are as many interchangeable requests as reservations for them. */
  next({ request, own }: Reservation<D, R>): R {
    // If units were refunded, a later request may have an earlier reservation than one with another cost. Then it may go first.
    const next = own ? request : ((this.#first(request) ?? this.#requests.find(ALL, (one) => isLikeRequest(one, request))) as R)
    this.#leave(next)
    return next
  }

  /**
   * Removes a request. Also removes and returns the reservation that is no longer needed: its own, or the last reservation that
   * interchangeable requests can leave without overtaking another request of the key.
   */
  leave(request: R): Reservation<D, R> {
    const needless = request.own ?? this.#needless(request)
    this.#leave(request)
    this.remove(needless)
    return needless
  }

  /**
   * Swaps a request whose reservation is due with the first request here that goes before it.
   *
   * @param than a request in a line that also goes before it
   * @param fits whether a request may use its reservation
   */
  exchange(request: R, than: R | undefined, fits: (request: R) => boolean): R | undefined {
    const first = this.#requests.find(ALL, fits, than ?? request)
    if (first === undefined) return undefined
    this.#leave(first)
    this.#requests.add(request)
    return first
  }

  /** Handles that the other policies allow a request. If an undecided request goes before it, the two swap their decisions. */
  answered(of: Deciding<R>): void {
    this.deciding.delete(of)
    let first = of
    for (const one of this.deciding) {
      const { request } = one
      if (!request.settled && goesBefore(request, first.request) && isLikeRequest(request, of.request)) first = one
    }
    const { request } = first
    first.request = of.request
    of.request = request
  }

  /** The requests whose reservation is due after a moment, last one first. */
  after(moment: number): R[] {
    const requests = this.#requests.all
    const late = this.#list.filter(({ at }) => !(at <= moment)).reverse()
    return late.map(({ own, request }) => {
      const place = requests.findLastIndex((one) => isLikeRequest(one, request))
      return own ? request : (requests.splice(place, 1)[0] as R)
    })
  }

  /** Moves the reservations after a moment forward by `by` milliseconds, but not before `now`. */
  moveUp(after: number, by: number, now: number): void {
    for (const one of this.#list) if (one.at > after) one.at = Math.max(now, one.at - by)
  }

  /** Keeps late reservations at their pace. Otherwise all of them would be used at once if the event loop is late. */
  keepApart(from: number, paceOf: (decision: D) => number): void {
    let free = from
    for (const one of this.#list) {
      if (one.beyond > 0) continue
      if (one.at >= free) break
      one.at = free
      free += paceOf(one.decision)
    }
    this.lateUntil = free
    this.#list.sort(bySooner)
  }

  /**
   * A test for requests in their order: whether each can use the reservation of this one, without overtaking a request with another cost
   * that came between them.
   */
  inTurn(replaced: R): (one: R) => boolean {
    let earliest = ALL
    return (one) => {
      if (!this.#shared && one.number > replaced.number && isOther(one, replaced)) earliest = Math.min(earliest, one.number)
      return one.number < earliest && isLikeRequest(one, replaced)
    }
  }

  /** Whether a request in place of this one would go before an earlier request that came between them and has another cost. */
  overtakes(request: R, replaced: R): boolean {
    const isBetween = (one: R) => one.number > replaced.number && one.number < request.number && isOther(one, request)
    return !this.#shared && this.#requests.find(ALL, isBetween, request) !== undefined
  }

  #needless(request: R): Reservation<D, R> {
    const place = this.#shared ? -1 : this.#list.findIndex((one) => !one.own && one.request === request)
    let needless = place < 0 ? this.#lastFor(request) : this.#list[place]
    for (const one of place < 0 ? [] : this.#list.slice(place)) {
      if (isOther(one.request, request)) break
      if (!one.own && one.request.key === request.key) needless = one
    }
    return needless as Reservation<D, R>
  }

  #lastFor(request: R): Reservation<D, R> | undefined {
    return this.#list.findLast((one) => !one.own && isLikeRequest(one.request, request))
  }

  /** The first request that may use a reservation of this one. */
  #first(like: R, before?: R): R | undefined {
    return this.#requests.find(ALL, this.inTurn(like), before)
  }

  #leave(request: R): void {
    if (request.own === undefined) this.#requests.remove(request)
    request.own = undefined
  }

  #insert(reservation: Reservation<D, R>): void {
    let place = this.#list.length
    while (place > 0 && bySooner(reservation, this.#list[place - 1] as Reservation<D, R>) < 0) place--
    this.#list.splice(place, 0, reservation)
  }
}

function bySooner<D, R extends Ordered<R>>(a: Reservation<D, R>, b: Reservation<D, R>): number {
  return a.at - b.at || (goesBefore(a.request, b.request) ? -1 : 1)
}

type Alike = Pick<Reservable<never, never>, 'key' | 'wanted'>

/** Whether each of two requests can use the other's reservation. */
function isLikeRequest(one: Alike, other: Alike): boolean {
  return one.key === other.key && isLike(one.wanted, other.wanted)
}

/** Whether neither of two requests of the same key can use the other's reservation. */
function isOther(one: Alike, other: Alike): boolean {
  return one.key === other.key && !isLike(one.wanted, other.wanted)
}
