import { isLike } from './options.ts'
import { goesBefore, type Ordered, Priorities } from './priorities.ts'
import type { Timed } from './schedule.ts'

/** A request as far as it can have a reservation. */
export interface Reserving<D, R> extends Ordered<R> {
  readonly key: string
  /** Whether it has ended. */
  readonly settled: boolean
  /** The reservation that no other request may use. */
  own: Reservation<D, R> | undefined
}

/** Units that are counted, and may be used from `at` on. */
export interface Reservation<D, R> {
  /** On the monotonic clock, milliseconds. */
  at: number
  readonly decision: D
  /** The request that it was made for. Any other one that asks for the same may use it. */
  readonly request: R
  /** Whether only that request may use it: its caller knows the time. */
  readonly own: boolean
  /** Milliseconds that `at` lies behind the delay of the decision: then it keeps no pace. */
  readonly beyond: number
}

/** The question to other policies about a request whose reservation is due. */
export interface Deciding<R> {
  request: R
}

/**
 * The reservations of one counter that are not due yet, soonest first, and the requests that they are for, as many. A reservation belongs to no
 * request: when it is due, the first request that asks for the same uses it. If a request leaves, the last reservation is cancelled.
 *
 *     reservations   10 ms   30 ms   50 ms
 *     requests       urgent  first   second
 */
export class Reservations<D, R extends Reserving<D, R>> implements Timed {
  readonly id: string
  readonly policy: string
  /** When the first one is due. */
  at = 0
  place = -1
  /** Until then the reservations go that were late once, each at its distance to the one before it. */
  lateUntil = 0
  /** Requests whose reservation is due, while the other policies decide. */
  readonly deciding: Set<Deciding<R>> = new Set()
  readonly #list: Reservation<D, R>[] = []
  readonly #requests: Priorities<R> = new Priorities()

  constructor(id: string, policy: string) {
    this.id = id
    this.policy = policy
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

  /** When the request came that has waited longest. */
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

  /** When a request that has just come is expected to go. */
  expected(request: R): number {
    const before = this.#requests.count(request.wanted.priority)
    if (before === this.#requests.count()) return this.#lastFor(request)?.at ?? Number.NEGATIVE_INFINITY
    let left = before
    return this.#list.find(({ own }) => !own && --left === 0)?.at ?? Number.NEGATIVE_INFINITY
  }

  /** Whether a request that asks for the same goes before this one. */
  hasBefore(request: R): boolean {
    return this.#list.length > 0 && this.#first(request, request) !== undefined
  }

  /** Takes a reservation out that is due, or was made for nothing. */
  remove(reservation: Reservation<D, R>): void {
    const at = this.#list.indexOf(reservation)
    if (at >= 0) this.#list.splice(at, 1)
  }

  /** The request that uses a reservation which is due. It leaves. */
  next({ request, own }: Reservation<D, R>): R | undefined {
    const next = own ? request : this.#first(request)
    if (next !== undefined) this.#leave(next)
    return next
  }

  /** A request leaves. Returns the reservation that is not needed any more, which is taken out: its own, or the last one of its kind. */
  leave(request: R): Reservation<D, R> | undefined {
    const needless = request.own ?? this.#lastFor(request)
    this.#leave(request)
    if (needless !== undefined) this.remove(needless)
    return needless
  }

  /**
   * A request whose reservation is due gives way to the first one here that goes before it, and gets its place.
   *
   * @param than one that waits elsewhere and goes before the request, too
   */
  exchange(request: R, than: R | undefined): R | undefined {
    const first = this.#first(request, than ?? request)
    if (first === undefined) return undefined
    this.#leave(first)
    this.#requests.add(request)
    return first
  }

  /** The other policies allow a request. If one about which they still decide goes before it, each gets the other's answer. */
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

  /** The requests whose reservation is due after a moment, the last one first. */
  after(moment: number): R[] {
    const requests = this.#requests.all
    const late = this.#list.filter(({ at }) => !(at <= moment)).reverse()
    return late.map(({ own, request }) => {
      if (own) return request
      const [last = request] = requests.splice(
        requests.findLastIndex((one) => isLikeRequest(one, request)),
        1,
      )
      return last
    })
  }

  /** The reservations after a moment come earlier by so many milliseconds, though not before `now`. */
  moveUp(after: number, by: number, now: number): void {
    for (const one of this.#list) if (one.at > after) one.at = Math.max(now, one.at - by)
  }

  /** If the event loop is late, the reservations after one that is late keep their distance to it: else all of them would be used at once. */
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

  #lastFor(request: R): Reservation<D, R> | undefined {
    return this.#list.findLast((one) => !one.own && isLikeRequest(one.request, request))
  }

  /** The first request that asks for the same as this one. */
  #first(like: R, before?: R): R | undefined {
    return this.#requests.find(Number.POSITIVE_INFINITY, (one) => isLikeRequest(one, like), before)
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

type Alike = Pick<Reserving<never, never>, 'key' | 'wanted'>

/** Whether each of two requests can use the other's reservation. */
function isLikeRequest(one: Alike, other: Alike): boolean {
  return one.key === other.key && isLike(one.wanted, other.wanted)
}
