import { show } from '../report/errors.ts'
import { AcquireError, type AcquireFailure } from './acquire-error.ts'
import { Chain } from './chain.ts'
import type { Gate } from './gate.ts'
import { type Answer, counterId, named, type Request } from './line.ts'
import { listen, unlisten } from './listen.ts'
import { Occupancy } from './occupancy.ts'
import { isLike } from './options.ts'
import { Schedule } from './schedule.ts'
import type { QueueSettings } from './settings.ts'
import { type WaitingKey, Waits } from './waits.ts'

/** Requests that are held by one counter. */
class Held<D extends Answer> extends Chain<Request<D>> {
  size = 0
  /** Until then the others go that were late once, each at its distance to the one before it. */
  lateUntil = 0
  readonly policy: string

  constructor(policy: string) {
    super()
    this.policy = policy
  }
}

/** The lines of those that have no place yet. */
interface Lines<D extends Answer> {
  /** A request is about to end, or has a place. */
  leave(request: Request<D>): void
  /**
   * A request waits in a line again.
   *
   * @param rejection what has rejected it when its place had come
   */
  waitAgain(request: Request<D>, now: number, rejection: D | undefined): void
  /** One in a line that waits for the same as a request, and came before it. */
  before(request: Request<D>): Request<D> | undefined
  /** Whether nobody of a request's line is to be asked about now. */
  paused(request: Request<D>, now: number): boolean
  /** Times have changed for a reason from outside. */
  changed(): void
}

/** All requests that wait, and how each of them ends: once, and whatever it held is free then. */
export class Waiters<D extends Answer> {
  /** Requests by when their time is over. */
  readonly times: Schedule<Request<D>> = new Schedule()
  /** Requests that are held, by when they go. */
  readonly going: Schedule<Request<D>> = new Schedule()
  /** Those that were let in and keep a pace, of each counter in their order; and those that are held by another one. */
  readonly #held = new Map<string, Held<D>>()
  readonly waits: Waits = new Waits()
  readonly #gate: Gate<D>
  readonly #settings: QueueSettings
  readonly #lines: Lines<D>
  /** Whether the throttler is closing: who does not go in time is told so. */
  closing = false
  /** Until when requests may go that wait while it closes. */
  closesAt: number = Number.POSITIVE_INFINITY
  readonly #occupancy: Occupancy
  #went: { readonly policy: string; readonly key: string; readonly time: number }[] = []
  #release: (() => void) | undefined
  #empty: (() => void) | undefined

  constructor(gate: Gate<D>, settings: QueueSettings, lines: Lines<D>) {
    this.#gate = gate
    this.#settings = settings
    this.#lines = lines
    this.#occupancy = new Occupancy(settings.maxWaiting)
  }

  /** How many there are. */
  get size(): number {
    return this.#occupancy.size
  }

  /** Whether there is no room for one more request of a client. */
  isFull(client: string | undefined): boolean {
    return this.#occupancy.isFull(client)
  }

  /** Whether as many are held by a counter as may wait for one key. */
  crowded(counter: string): boolean {
    return (this.#held.get(counter)?.size ?? 0) >= this.#settings.maxWaitingPerKey
  }

  /** When the last one goes that a counter holds; -Infinity where it holds none. */
  lastOf(counter: string): number {
    return this.#held.get(counter)?.last?.at ?? Number.NEGATIVE_INFINITY
  }

  /** The keys whose requests are held, at most so many. */
  held(now: number, most: number): WaitingKey[] {
    return [...this.#held]
      .slice(0, most)
      .map(([id, { first, size }]) => ({ ...named(id), requests: size, longest: now - (first?.came ?? now) }))
  }

  /** Calls a function as soon as nobody waits. */
  whenEmpty(then: () => void): void {
    if (this.size === 0) then()
    else this.#empty = then
  }

  /** A request waits until `at`. */
  enter(request: Request<D>, at: number): void {
    this.#scheduleOf(request).set(request, at)
    if (request.entered) return
    request.entered = true
    const { signal, client } = request.wanted
    // Timers of a throttler don't keep the process alive; somebody who waits does.
    if (this.size === 0) this.#release = this.#gate.clock.hold?.()
    this.#occupancy.add(client)
    if (signal === undefined) return
    request.onAbort = () => {
      this.giveBack(request)
      this.fail(request, 'aborted')
      this.#lines.changed()
    }
    listen(signal, request.onAbort)
  }

  /** A request has been let in; where a pace is kept it waits for that long. `by` is as of `Queues.hold`. */
  allow(request: Request<D>, decision: D, now: number, by?: { readonly counter: string; readonly delayMs: number }): void {
    const { delayMs: delay } = by ?? decision
    const isPart = this.#gate.isPart(decision)
    const id = by?.counter ?? (delay === 0 && this.#held.size === 0 && !isPart ? '' : this.#gate.paceMaker(decision))
    const before = this.#held.get(id)
    const goes = by === undefined ? Math.max(now + delay, before?.lateUntil ?? 0) : now + delay
    const late = (request.wanted.decided === true ? now + delay : goes) > request.at
    const crowded = by !== undefined && this.crowded(id)
    if (goes <= now && !isPart && (late || by !== undefined || !this.#isBefore(before?.last, request))) {
      this.#goes(request, now, decision)
    } else if ((late && goes > now) || crowded || (!request.entered && this.isFull(request.wanted.client))) {
      this.#gate.refund(decision)
      this.fail(request, late ? 'timeout' : 'queue-full', goes - now)
    } else {
      this.#lines.leave(request)
      this.times.remove(request)
      request.held = decision
      request.by = id
      request.beyond = delay - decision.delayMs
      const others = before ?? new Held<D>(named(id).policy)
      this.#held.set(id, others)
      const latest = request.at
      this.enter(request, goes)
      if (by === undefined) {
        if (goes === others.lateUntil) others.lateUntil += this.#gate.pace(decision).time
        this.#insert(request, others)
        this.#keepOrder(request, latest, others)
      } else others.push(request)
      others.size++
      this.waits.add(others.policy, 1)
    }
  }

  /** Among those that its counter holds, by when they go. */
  #insert(request: Request<D>, others: Held<D>): void {
    let next: Request<D> | undefined
    for (let last = others.last; last !== undefined && last.at > request.at; last = last.before) next = last
    others.insert(request, next)
  }

  /** A request got a place before the last ones of those held before it, as another node has given some back: they take them in their order. */
  #keepOrder(request: Request<D>, latest: number, others: Held<D>): void {
    // Those that take more or less keep theirs, and those whose time has come.
    const early: Request<D>[] = []
    for (let one = request.after; one !== undefined; one = one.after) {
      if (one.place >= 0 && this.#isBefore(one, request) && isOfSame(one.held as D, request.held as D)) early.unshift(one)
    }
    if (early.length === 0 || (early[0] as Request<D>).at > latest) return
    let late = request
    for (const one of early) {
      const { held, at } = one
      one.held = late.held
      late.held = held
      this.going.set(one, late.at)
      this.going.set(late, at)
      others.exchange(late, one)
      late = one
    }
  }

  /** Whether a request that is held should go before another one that wants the same. */
  #isBefore(held: Request<D> | undefined, { wanted }: Request<D>): boolean {
    return held !== undefined && held.beyond === 0 && held.wanted.priority >= wanted.priority && isLike(held.wanted, wanted)
  }

  /** Refunds what a request took that goes no more; those that were to go after it move up. */
  giveBack(request: Request<D>): void {
    const { held } = request
    if (held === undefined) return
    const now = this.#gate.clock.monotonic()
    const shared = request.beyond === 0 && this.#gate.sharesPlaces(held)
    const free = shared ? this.#moveUp(request, now) : request.at - request.beyond
    // A place that has come passes unused: what came back of it others would take again behind all that is still to come.
    if (shared && free <= now) return
    const sooner = this.#gate.giveBack(held, Math.max(0, free - now))
    if (shared || request.beyond > 0) return
    for (let next = request.after; next !== undefined; next = next.after)
      if (next.place >= 0) this.going.set(next, Math.max(now, next.at - sooner))
  }

  /** Between the places of a node other nodes have some: each takes that of the one before it that takes as much. Returns which is free then. */
  #moveUp(request: Request<D>, now: number): number {
    const others = this.#held.get(request.by ?? '')
    let free = request.at
    for (let next = request.after; next !== undefined; ) {
      const one = next
      const { at } = one
      next = one.after
      if (one.place < 0 || one.beyond > 0 || at <= free || !isLike(one.wanted, request.wanted)) continue
      this.going.set(one, Math.max(now, free))
      others?.exchange(request, one)
      free = at
    }
    return free
  }

  /** Where the event loop is late, those behind a request that is held keep their distance to it: otherwise all that are late would go at once. */
  #keepPace(request: Request<D>, held: D, now: number): void {
    const { time, slack } = this.#gate.pace(held)
    if (now - request.at <= slack || request.beyond > 0 || this.closing) return
    let free = now - slack + time
    for (let next = request.after; next !== undefined && next.at < free; next = next.after) {
      if (next.place < 0 || next.beyond > 0) continue
      this.going.set(next, free)
      free += this.#gate.pace(next.held as D).time
    }
    const others = this.#held.get(request.by ?? '')
    if (others !== undefined) others.lateUntil = free
  }

  /** The time of a held request has come. */
  release(request: Request<D>): void {
    const held = request.held as D
    const now = this.#gate.clock.monotonic()
    this.#keepPace(request, held, now)
    if (request.beyond === 0 && request.wanted.decided !== true && !this.closing && this.#gate.blocks(held)) {
      // By hand, since it got its place.
      this.#gate.giveBack(held, 0)
      this.#waitAgain(request, now)
      return
    }
    if (!this.closing && this.#gate.isPart(held) && this.#lines.paused(request, now)) {
      this.giveBack(request)
      this.#waitAgain(request, now)
      return
    }
    const rest = this.#gate.isPart(held) ? this.#gate.takeRest(request.key, request.wanted, held) : undefined
    if (rest === undefined) this.#goes(request, now, this.#gate.went(held))
    else if (!(rest instanceof Promise)) this.#withRest(request, held, rest)
    else {
      // It is held, and goes when that is answered.
      this.going.remove(request)
      rest.then(
        (decision) => {
          this.#withRest(request, held, decision)
          this.#lines.changed()
        },
        (error: unknown) => {
          if (!request.settled) this.break(request, error)
          this.#lines.changed()
        },
      )
    }
  }

  /** The policies have decided that do so when its place has come. */
  #withRest(request: Request<D>, held: D, rest: D): void {
    const now = this.#gate.clock.monotonic()
    if (request.settled) {
      if (rest.allowed) this.#gate.refund(rest)
      return
    }
    if (!rest.allowed) {
      request.rejected = rest
      this.giveBack(request)
      if (this.closing) this.fail(request, 'timeout', rest.retryAfterMs)
      else this.#waitAgain(request, now, rest)
      return
    }
    const whole = this.#gate.join(this.#gate.went(held), rest)
    if (rest.delayMs === 0) {
      const first = this.#inTurn(request)
      this.#goes(first, now, this.#gate.went(whole))
      if (first !== request && request.held === undefined) this.#lines.waitAgain(request, now, undefined)
    } else {
      // A policy keeps a pace that did not when it got its place: it is held by that.
      this.#letItGo(request)
      request.at = Math.min(request.at, this.closesAt)
      this.allow(request, whole, now)
    }
  }

  /** Who goes when a request may: one that came before it, was rejected a moment ago and waits again goes first, and this one in its stead. */
  #inTurn(request: Request<D>): Request<D> {
    if (this.closing) return request
    const others = this.#held.get(request.by ?? '') as Held<D>
    const waits = this.#lines.before(request)
    // In the place of the other one it must still go in time.
    const latest = request.came + request.wanted.timeout
    let first = waits ?? request
    for (let one = others.first; one !== undefined; one = one.after) {
      const isFirst =
        one.number < first.number && one.place >= 0 && one.at <= latest && one.key === request.key && this.#isBefore(one, request)
      if (isFirst && isOfSame(one.held as D, request.held as D)) first = one
    }
    if (first === request) return request
    if (first === waits) {
      this.#letItGo(request)
      return first
    }
    request.held = first.held
    others.exchange(request, first)
    this.going.set(request, first.at)
    return first
  }

  /** It is held no more, and has no place. */
  #letItGo(request: Request<D>): void {
    this.going.remove(request)
    this.#letGo(request)
    request.held = undefined
    request.by = undefined
    request.asked = false
    request.group = undefined
    request.at = request.came + request.wanted.timeout
  }

  /** Its place is of no use: it waits in its line again. */
  #waitAgain(request: Request<D>, now: number, rejection?: D): void {
    this.#letItGo(request)
    this.#lines.waitAgain(request, now, rejection)
  }

  /** @param retryAfterMs milliseconds, where known */
  fail(request: Request<D>, why: AcquireFailure, retryAfterMs: number | undefined = request.rejected?.retryAfterMs): void {
    const reason = this.closing && why === 'timeout' ? 'closed' : why
    this.waits.failures[reason]++
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

  /** Reports those that went, once all have gone that may: a listener must not take their room. */
  report(): void {
    if (this.#went.length === 0) return
    const went = this.#went
    this.#went = []
    for (const { policy, key, time } of went) this.#gate.waited(policy, key, time)
  }

  /** It could not be decided about. */
  break(request: Request<D>, error: unknown): void {
    this.#end(request)
    request.reject(error)
  }

  #goes(request: Request<D>, now: number, decision: D): void {
    const { entered, rejected } = request
    // It leaves its line at the end.
    const id = request.by ?? request.line?.counter?.id ?? (rejected === undefined ? '' : counterId(rejected))
    this.#end(request)
    const { policy, key } = named(id)
    if (entered && policy !== '') this.#went.push({ policy, key, time: Math.max(0, now - request.came) })
    request.resolve(decision)
  }

  #end(request: Request<D>): void {
    request.settled = true
    this.#letGo(request)
    this.#lines.leave(request)
    this.#scheduleOf(request).remove(request)
    const { signal, client } = request.wanted
    if (signal !== undefined && request.onAbort !== undefined) unlisten(signal, request.onAbort)
    if (!request.entered) return
    this.#occupancy.remove(client)
    if (this.size > 0) return
    this.#release?.()
    this.#empty?.()
  }

  /** Its counter holds it no more. */
  #letGo(request: Request<D>): void {
    const { held, by } = request
    if (held === undefined || by === undefined) return
    const others = this.#held.get(by) as Held<D>
    others.remove(request)
    this.waits.add(others.policy, -1)
    if (--others.size === 0) this.#held.delete(by)
  }

  #scheduleOf({ held }: Request<D>): Schedule<Request<D>> {
    return held === undefined ? this.times : this.going
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

/** Whether two decisions are of the same policies and keys: then each request can use the other's. */
function isOfSame<D extends Answer>({ parts }: D, other: D): boolean {
  if (parts.length !== other.parts.length) return false
  return parts.every(({ key, policy }, at) => key === other.parts[at]?.key && policy?.name === other.parts[at]?.policy?.name)
}
