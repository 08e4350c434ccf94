import { show } from '../report/errors.ts'
import { AcquireError, type AcquireFailure } from './acquire-error.ts'
import type { Counters } from './counters.ts'
import type { Gate } from './gate.ts'
import { type Answer, counterId, named, type Request } from './line.ts'
import { listen, unlisten } from './listen.ts'
import { Occupancy } from './occupancy.ts'
import { isLike } from './options.ts'
import { type Reservation, Reservations } from './reservations.ts'
import { Schedule } from './schedule.ts'
import type { QueueSettings } from './settings.ts'
import type { WaitingKey } from './waits.ts'

/** The most requests of a line that are searched for a request that goes before another. */
const SEARCHED = 500

/**
 * Puts a request back into its line.
 *
 * @param rejection the decision that rejected it at the reserved time
 */
type WaitAgain<D extends Answer> = (request: Request<D>, now: number, rejection: D | undefined) => void

/** All waiting requests. Each of them ends once, and then releases its resources. */
export class Waiters<D extends Answer> {
  /** Requests by their timeout. */
  readonly times: Schedule<Request<D>> = new Schedule()
  /** Counters with reservations, by when the first of these is due. */
  readonly due: Schedule<Reservations<D, Request<D>>> = new Schedule()
  readonly #reservations = new Map<string, Reservations<D, Request<D>>>()
  readonly #gate: Gate<D>
  readonly #settings: QueueSettings
  readonly #counters: Counters<D>
  readonly #join: WaitAgain<D>
  /** Called if times changed because of an event such as a reply. */
  readonly changed: () => void
  /** Whether the throttler is closing. Then a request that can't be allowed in time fails with `closed`. */
  closing = false
  /** The end of the time in which waiting requests may finish. */
  closesAt: number = Number.POSITIVE_INFINITY
  readonly #occupancy: Occupancy
  #went: { readonly policy: string; readonly key: string; readonly time: number }[] = []
  #release: (() => void) | undefined
  #empty: (() => void) | undefined

  constructor(gate: Gate<D>, settings: QueueSettings, counters: Counters<D>, waitAgain: WaitAgain<D>, changed: () => void) {
    this.#gate = gate
    this.#settings = settings
    this.#counters = counters
    this.#join = waitAgain
    this.changed = changed
    this.#occupancy = new Occupancy(settings.maxWaiting)
  }

  /** Number of waiting requests. */
  get size(): number {
    return this.#occupancy.size
  }

  /** Whether a client may add no further request. */
  isFull(client: string | undefined): boolean {
    return this.#occupancy.isFull(client)
  }

  /** Whether a counter has reached `maxWaitingPerKey` reservations. */
  crowded(counter: string): boolean {
    return (this.#reservations.get(counter)?.size ?? 0) >= this.#settings.maxWaitingPerKey
  }

  /** When the last reservation of a counter is due. -Infinity if it has none. */
  lastOf(counter: string): number {
    return this.#reservations.get(counter)?.last?.at ?? Number.NEGATIVE_INFINITY
  }

  /** The keys of requests with reservations, for at most `most` counters. */
  reserved(now: number, most: number): WaitingKey[] {
    return [...this.#reservations].slice(0, most).map(([id, { since, size }]) => ({ ...named(id), requests: size, longest: now - since }))
  }

  /** Calls a function as soon as no request waits. */
  whenEmpty(then: () => void): void {
    if (this.size === 0) then()
    else this.#empty = then
  }

  /** Adds a request, which waits until its timeout. */
  enter(request: Request<D>): void {
    this.times.set(request, request.at)
    if (request.entered) return
    request.entered = true
    const { signal, client } = request.wanted
    // A throttler's timers don't keep Node.js running, but waiting requests do.
    if (this.size === 0) this.#release = this.#gate.clock.hold?.()
    this.#occupancy.add(client)
    if (signal === undefined) return
    request.onAbort = () => {
      this.fail(request, 'aborted')
      this.changed()
    }
    listen(signal, request.onAbort)
  }

  /** Ends an allowed request, or reserves for it if it has a delay. `by` is the same as for `Queues.hold`. */
  allow(request: Request<D>, decision: D, now: number, by?: { readonly counter: string; readonly delayMs: number }): void {
    const { delayMs: delay } = by ?? decision
    const isPart = this.#gate.isPart(decision)
    const id = by?.counter ?? (delay === 0 && this.#reservations.size === 0 && !isPart ? '' : this.#gate.pace(decision).counter)
    const found = this.#reservations.get(id)
    const at = by === undefined ? Math.max(now + delay, found?.lateUntil ?? 0) : now + delay
    const own = by !== undefined || request.wanted.decided === true
    if (at <= now && !isPart && (own || at > request.at || found?.hasBefore(request) !== true)) {
      this.#goes(request, now, decision, '')
      return
    }
    const isNew = !request.entered
    const full =
      ((by !== undefined || (isNew && request.wanted.decided !== true)) && this.crowded(id)) ||
      (isNew && this.isFull(request.wanted.client))
    const reservations = found ?? new Reservations<D, Request<D>>(id, named(id).policy, this.#gate.pace(decision).shared)
    const reservation = { at, decision, request, own, beyond: delay - decision.delayMs }
    this.#counters.leave(request)
    this.#reserve(reservation, reservations)
    const expected = own ? at : reservations.expected(request)
    const late = expected > request.at && expected > now
    if (!late && !full) {
      this.enter(request)
      return
    }
    const needless = this.#leave(request, reservations)
    if (needless === reservation) this.#gate.refund(decision)
    else this.#cancel(needless, reservations)
    this.fail(request, late ? 'timeout' : 'queue-full', expected - now)
  }

  #reserve(reservation: Reservation<D, Request<D>>, reservations: Reservations<D, Request<D>>): void {
    const { at, decision, own } = reservation
    if (!own && at === reservations.lateUntil) reservations.lateUntil += this.#gate.pace(decision).time
    reservations.add(reservation)
    reservation.request.reservations = reservations
    this.#reservations.set(reservations.id, reservations)
    this.#counters.waits.add(reservations.policy, 1)
    this.#schedule(reservations)
  }

  /** Updates the schedule after a change of a counter's reservations. */
  #schedule(reservations: Reservations<D, Request<D>>): void {
    const { id, first, size } = reservations
    if (first !== undefined) this.due.set(reservations, first.at)
    else this.due.remove(reservations)
    if (size === 0) this.#reservations.delete(id)
  }

  #cancel(reservation: Reservation<D, Request<D>>, reservations: Reservations<D, Request<D>>): void {
    const { at, beyond, decision, request } = reservation
    const now = this.#gate.clock.monotonic()
    const shared = beyond === 0 && this.#gate.pace(decision).shared
    // A due reservation stays unused. If its units were returned, another process would use them behind all later reservations.
    if (shared && at <= now) return
    // Other processes have the reservations behind it, so the next request here uses it.
    const next = shared && !this.closing ? this.#counters.lines.get(request.key)?.first : undefined
    if (next !== undefined && isLike(next.wanted, request.wanted) && at <= next.at) {
      this.#counters.leave(next)
      this.#reserve({ ...reservation, request: next, own: false }, reservations)
      return
    }
    const sooner = this.#gate.giveBack(decision, Math.max(0, at - beyond - now))
    if (shared || beyond > 0 || sooner === 0) return
    reservations.moveUp(at, sooner, now)
    this.#schedule(reservations)
  }

  /** Removes a request from its reservations. Returns the reservation that is no longer needed. */
  #leave(request: Request<D>, reservations: Reservations<D, Request<D>>): Reservation<D, Request<D>> {
    const needless = reservations.leave(request)
    request.reservations = undefined
    this.#counters.waits.add(reservations.policy, -1)
    this.#schedule(reservations)
    return needless
  }

  /** Ends the first reservation of a counter, which is due. The next request uses it. */
  release(reservations: Reservations<D, Request<D>>): void {
    const reservation = reservations.first as Reservation<D, Request<D>>
    const { at, beyond, decision } = reservation
    const now = this.#gate.clock.monotonic()
    const { time, slack } = this.#gate.pace(decision)
    reservations.remove(reservation)
    if (now - at > slack && beyond === 0 && !this.closing) reservations.keepApart(now - slack + time, (one) => this.#gate.pace(one).time)
    const request = reservations.next(reservation)
    this.#counters.waits.add(reservations.policy, -1)
    this.#schedule(reservations)
    request.reservations = undefined
    if (beyond === 0 && request.wanted.decided !== true && !this.closing && this.#gate.blocks(decision)) {
      // The key was blocked manually after the reservation.
      this.#gate.giveBack(decision, 0)
      this.#waitAgain(request, now)
    } else if (this.#gate.isPart(decision)) this.#decideRest(request, decision, reservations, now)
    else this.#use(request, this.#gate.went(decision), reservations, now)
  }

  /** Decides by the other policies when a reservation is due. */
  #decideRest(request: Request<D>, decision: D, reservations: Reservations<D, Request<D>>, now: number): void {
    if (!this.closing && (this.#counters.lines.get(request.key)?.pausedUntil ?? now) > now) {
      this.#refund(decision)
      this.#waitAgain(request, now)
      return
    }
    const rest = this.#gate.takeRest(request.key, request.wanted, decision)
    if (rest === undefined) this.#use(request, this.#gate.went(decision), reservations, now)
    else if (!(rest instanceof Promise)) this.#withRest(request, decision, rest, reservations)
    else {
      // The request ends with their decision.
      this.times.remove(request)
      request.deciding = decision
      const one = { request }
      reservations.deciding.add(one)
      this.#counters.waits.add(reservations.policy, 1)
      const answered = (then: (request: Request<D>) => void): void => {
        one.request.deciding = undefined
        then(one.request)
        reservations.deciding.delete(one)
        this.#counters.waits.add(reservations.policy, -1)
        this.#schedule(reservations)
        this.changed()
      }
      rest.then(
        (answer) => {
          if (answer.allowed && !one.request.settled) reservations.answered(one)
          answered((request) => this.#withRest(request, decision, answer, reservations))
        },
        (error: unknown) =>
          answered((request) => {
            if (request.settled) return
            this.#refund(decision)
            this.break(request, error)
          }),
      )
    }
  }

  #withRest(request: Request<D>, decision: D, rest: D, reservations: Reservations<D, Request<D>>): void {
    const now = this.#gate.clock.monotonic()
    if (request.settled) {
      if (rest.allowed) this.#gate.refund(rest)
      return
    }
    if (!rest.allowed) {
      request.rejected = rest
      this.#refund(decision)
      if (this.closing) this.fail(request, 'timeout', rest.retryAfterMs)
      else this.#waitAgain(request, now, rest)
      return
    }
    const whole = this.#gate.join(this.#gate.went(decision), rest)
    if (rest.delayMs === 0) this.#use(request, this.#gate.went(whole), reservations, now)
    else {
      // A policy delays the request that did not when the reservation was made. The request waits for that delay.
      request.at = Math.min(request.at, this.closesAt)
      this.allow(request, whole, now)
    }
  }

  /** Refunds a due reservation that stays unused. */
  #refund(decision: D): void {
    if (!this.#gate.pace(decision).shared) this.#gate.giveBack(decision, 0)
  }

  /**
   * Ends a request as allowed. If another waiting request goes before it, that one is allowed in its place. A request that has reached its
   * timeout then fails, so only an earlier one of its priority goes before it.
   */
  #use(request: Request<D>, decision: D, reservations: Reservations<D, Request<D>>, now: number): void {
    const { id } = reservations
    const isFinal = this.closing || request.wanted.decided === true
    const highest = now < request.at ? Number.POSITIVE_INFINITY : request.wanted.priority
    const before = (line: boolean) => {
      const isInTurn = reservations.inTurn(request)
      return (one: Request<D>) => one.wanted.priority <= highest && isInTurn(one) && !(line && reservations.overtakes(one, request))
    }
    const waits = isFinal ? undefined : this.#counters.lines.get(request.key)?.findBefore(request, SEARCHED, before(true))
    const first = isFinal ? undefined : reservations.exchange(request, waits, before(false))
    if (first !== undefined) {
      // It waits for the reservation of the other request.
      first.reservations = undefined
      request.reservations = reservations
      if (now < request.at) this.enter(request)
      else this.fail(request, 'timeout')
      this.#goes(first, now, decision, id)
    } else {
      this.#goes(waits ?? request, now, decision, id)
      if (waits !== undefined) this.#waitAgain(request, now)
    }
  }

  /** Puts a request back into its line. */
  #waitAgain(request: Request<D>, now: number, rejection?: D): void {
    request.by = undefined
    request.group = undefined
    request.at = request.came + request.wanted.timeout
    this.#join(request, now, rejection)
  }

  /** The requests whose reservation is due after `by`, last ones of each counter first. */
  after(by: number): Request<D>[] {
    return [...this.#reservations.values()].flatMap((reservations) => reservations.after(by))
  }

  /** Ends a new request that may not be decided any more. Returns whether it did. */
  refuses(request: Request<D>): boolean {
    const why = this.closing ? 'closed' : request.wanted.signal?.aborted === true ? 'aborted' : undefined
    if (why !== undefined) this.fail(request, why)
    return why !== undefined
  }

  /** @param retryAfterMs milliseconds, if known */
  fail(request: Request<D>, why: AcquireFailure, retryAfterMs: number | undefined = request.rejected?.retryAfterMs): void {
    const reason = this.closing && why === 'timeout' ? 'closed' : why
    this.#counters.waits.failures[reason]++
    this.#end(request)
    const { returns, signal } = request.wanted
    if (returns && reason !== 'aborted' && reason !== 'closed') {
      const { rejected } = request
      request.resolve(
        rejected?.allowed === false ? rejected : this.#gate.rejection(this.#gate.peek(request.key, request.wanted), retryAfterMs),
      )
    } else {
      const cause = reason === 'aborted' ? { cause: signal?.reason } : undefined
      request.reject(new AcquireError(reason, this.#message(reason, request, retryAfterMs), retryAfterMs, cause))
    }
  }

  /** Reports the allowed requests after all others that fit have been allowed. Otherwise a listener's request could use their capacity. */
  report(): void {
    if (this.#went.length === 0) return
    const went = this.#went
    this.#went = []
    for (const { policy, key, time } of went) this.#gate.waited(policy, key, time)
  }

  /** Ends a request with an error because it can't be decided. */
  break(request: Request<D>, error: unknown): void {
    this.#end(request)
    request.reject(error)
  }

  /** @param id the counter of the reservation that it used, or '' */
  #goes(request: Request<D>, now: number, decision: D, id: string): void {
    const { entered, rejected } = request
    // Read before `#end`, which removes the request from its line.
    const by = id || request.by || (request.line?.counter?.id ?? (rejected === undefined ? '' : counterId(rejected)))
    this.#end(request)
    const { policy, key } = named(by)
    if (entered && policy !== '') this.#went.push({ policy, key, time: Math.max(0, now - request.came) })
    request.resolve(decision)
  }

  /** Refunds the units that were reserved for a request, or for the last interchangeable one, and releases its resources. */
  #end(request: Request<D>): void {
    request.settled = true
    const { reservations, deciding } = request
    if (deciding !== undefined) this.#refund(deciding)
    if (reservations !== undefined) this.#cancel(this.#leave(request, reservations), reservations)
    this.#counters.leave(request)
    this.times.remove(request)
    const { signal, client } = request.wanted
    if (signal !== undefined && request.onAbort !== undefined) unlisten(signal, request.onAbort)
    if (!request.entered) return
    this.#occupancy.remove(client)
    if (this.size > 0) return
    this.#release?.()
    this.#empty?.()
  }

  #message(reason: AcquireFailure, { key, wanted }: Request<D>, retryAfterMs: number | undefined): string {
    const { maxWaitingPerKey, maxWaiting } = this.#settings
    switch (reason) {
      case 'timeout': {
        const when = retryAfterMs === undefined ? '' : `; the next is in ${retryAfterMs} ms at the earliest`
        return `Key ${show(key)} has no capacity within ${wanted.timeout} ms${when}. Raise "timeout", or try again later.`
      }
      case 'aborted':
        return `A request of key ${show(key)} was aborted by its signal while it waited. Its reason is the "cause".`
      case 'queue-full':
        return `The queue for key ${show(key)} is full (queue.maxWaitingPerKey ${maxWaitingPerKey}, queue.maxWaiting ${maxWaiting}). Raise them, or try again later.`
      case 'never-fits':
        return `A request of key ${show(key)} costs more than the limit, so it never fits. Lower its "cost", or raise the limit.`
      case 'closed':
        return 'The throttler was closed while a request waited. Close it after the last request.'
    }
  }
}
