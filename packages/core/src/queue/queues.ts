import { Alarm } from '../time/alarm.ts'
import type { AcquireFailure } from './acquire-error.ts'
import { Admission } from './admission.ts'
import type { Asking } from './asking.ts'
import { Chain } from './chain.ts'
import { Counters } from './counters.ts'
import type { Gate } from './gate.ts'
import { type Answer, type Counter, Line, opensIn, Request } from './line.ts'
import { type AcquireOptions, type Leaving, type Wanted, wanted } from './options.ts'
import type { QueueSettings } from './settings.ts'
import { Waiters } from './waiters.ts'
import { inLines, type WaitingRequests } from './waits.ts'

/** Requests to check in one turn of the event loop, which takes about a millisecond. */
const TURN = 500

/** Milliseconds. If some requests are decided and start within this time, the next step decides twice as many. */
const QUICK = 0.25

/** Counters to check for a snapshot, which takes about a millisecond. */
const LOOKED_AT = 10_000

const NEVER = Number.POSITIVE_INFINITY

/**
 * The reason for which a request can't wait. `soonest` is set if time is the reason: milliseconds until it could be allowed at the soonest.
 */
interface Obstacle {
  readonly why: AcquireFailure
  readonly soonest: number | undefined
}

/**
 * The lines of a throttler's keys. Each line waits for the counter that last rejected its first request. A counter with capacity allows one
 * request of a key, then one of the next key.
 */
export class Queues<D extends Answer> {
  readonly #gate: Gate<D>
  readonly #settings: QueueSettings
  readonly #waiters: Waiters<D>
  readonly #alarm: Alarm
  readonly #counters: Counters<D>
  readonly #admission: Admission<D>
  /** New requests without a decision. They are decided when the calling code has finished, because no request starts before. */
  readonly #arrivals: Chain<Request<D>> = new Chain()
  #number = 0
  /** Whether requests are being allowed at this moment. */
  #serving = false

  /** @param asking sends requests to the store. Undefined without one */
  constructor(gate: Gate<D>, settings: QueueSettings, asking: typeof Asking | undefined) {
    this.#gate = gate
    this.#settings = settings
    this.#counters = new Counters(gate)
    const waitAgain = (request: Request<D>, now: number, rejection: D | undefined) => this.#waitAgain(request, now, rejection)
    this.#waiters = new Waiters(gate, settings, this.#counters, waitAgain, () => this.#arm())
    this.#admission = new Admission(gate, this.#counters, this.#waiters, asking)
    this.#alarm = new Alarm(gate.clock, () => this.#step(TURN, 1))
  }

  /** Number of waiting requests. New requests are decided first. */
  get size(): number {
    this.#arrive(NEVER, NEVER)
    return this.#waiters.size
  }

  /** Implements the throttler's `acquire`. */
  acquire(key: string, options: AcquireOptions | undefined, returns: boolean): Promise<D> {
    return new Promise((resolve, reject) => this.enter(key, options, returns, resolve, reject))
  }

  /**
   * Does the same as `acquire`, for a promise that was returned earlier. A promise around another one would settle after promises of later
   * requests.
   */
  enter(
    key: string,
    options: AcquireOptions | undefined,
    returns: boolean,
    resolve: (decision: D) => void,
    reject: (error: unknown) => void,
  ): void {
    const now = this.#gate.clock.monotonic()
    const want = wanted(options, this.#settings, returns, (cost, limit) => this.#gate.askedBy(key, cost, limit))
    const request = new Request<D>(key, want, this.#number++, now, resolve, reject, this.#gate.ended)
    if (this.#arrivals.first === undefined) queueMicrotask(() => this.#step(0, 1))
    this.#arrivals.push(request)
  }

  /** Decides new requests until `most` have ended, or until `latest` if at least one has ended. */
  #arrive(most: number, latest: number): void {
    let ended = 0
    for (let request = this.#arrivals.first; request !== undefined; request = this.#arrivals.first) {
      const now = this.#gate.clock.monotonic()
      if (ended >= most || (ended > 0 && now >= latest)) return
      this.#arrivals.remove(request)
      try {
        if (!this.#waiters.refuses(request)) this.#decide(request, now)
      } catch (error) {
        if (!request.settled) this.#waiters.break(request, error)
      }
      if (request.settled) ended++
    }
  }

  /** The waiting requests, for snapshots. */
  waitingRequests(now: number): WaitingRequests {
    this.#arrive(NEVER, NEVER)
    const { policies, failures } = this.#counters.waits
    const keys = [...this.#waiters.reserved(now, LOOKED_AT), ...inLines(this.#counters.all, now, LOOKED_AT)]
    return { policies, failures, keys: keys.sort((a, b) => b.longest - a.longest) }
  }

  get closing(): boolean {
    return this.#waiters.closing
  }

  /** Whether a line has waiting requests. */
  has(line: string): boolean {
    return this.#counters.lines.has(line)
  }

  /** Whether a counter, a client or the whole queue has reached its maximum of waiting requests. */
  crowded(counter: string, client: string | undefined): boolean {
    return this.#waiters.isFull(client) || this.#waiters.crowded(counter)
  }

  /** The reason for which a request can't wait in a line, if that is already certain. */
  obstacle(line: string, wanted: Wanted): Obstacle | undefined {
    const found = this.#counters.lines.get(line)
    if (this.#waiters.isFull(wanted.client) || (found !== undefined && found.size >= this.#settings.maxWaitingPerKey))
      return { why: 'queue-full', soonest: undefined }
    const { unsaid, units } = found?.ahead(wanted.priority) ?? { unsaid: 0, units: 0 }
    const { cost } = wanted
    const soonest = this.#gate.soonest(line, unsaid + (cost === undefined ? 1 : 0), units + (cost ?? 0), wanted)
    if (soonest <= wanted.timeout) return undefined
    // The time for all units together is finite, even if one request costs more than the limit.
    const own = this.#gate.peek(line, wanted).retryAfterMs
    return own === Number.POSITIVE_INFINITY ? { why: 'never-fits', soonest: own } : { why: 'timeout', soonest }
  }

  /**
   * Makes a request wait in a line.
   *
   * @param rejected its rejection. Undefined if it waits because others wait
   */
  wait(line: string, wanted: Wanted, rejected: D | undefined): Promise<D> {
    return new Promise((resolve, reject) => {
      const now = this.#gate.clock.monotonic()
      const request = new Request<D>(line, wanted, this.#number++, now, resolve, reject)
      if (!this.#waiters.refuses(request)) {
        if (rejected === undefined) this.#join(request, now)
        else this.#joinRejected(request, rejected, now)
      }
      this.#arm()
    })
  }

  /**
   * Delays an allowed request.
   *
   * @param client the client of the request, if known
   * @param by set for a delay without a pace: its counter, for which at most `maxWaitingPerKey` requests wait, and milliseconds, which are
   * at least the decision's delay
   */
  hold(
    decision: D,
    signal: Leaving | undefined,
    client: string | undefined,
    by?: { readonly counter: string; readonly delayMs: number },
  ): Promise<D> {
    return new Promise((resolve, reject) => {
      const now = this.#gate.clock.monotonic()
      const { delayMs: delay } = by ?? decision
      const want: Wanted = { ...wanted(undefined, this.#settings), timeout: delay, signal, client, decided: true }
      const request = new Request<D>(decision.key, want, this.#number++, now, resolve, reject)
      if (this.#waiters.refuses(request)) this.#gate.refund(decision)
      else this.#waiters.allow(request, decision, now, by)
      this.#arm()
    })
  }

  /** Tries these counters again, because they may have capacity earlier than expected. */
  nudge(counters: Iterable<Pick<Answer, 'policy' | 'key'>>): void {
    for (const named of counters) this.#wake(this.#counters.find(named))
  }

  /** Does the same as `nudge` after a release. Requests that wait for it are allowed immediately. */
  released(counters: Iterable<Pick<Answer, 'policy' | 'key'>>): void {
    if (this.#counters.empty) return
    // A release during `serve` comes from a request that was just allowed.
    if (this.#serving) this.nudge(counters)
    else for (const named of counters) this.#serveNow(this.#counters.find(named))
    this.#arm()
  }

  /** Does the same as `nudge`, for all counters. */
  nudgeAll(): void {
    for (const counter of this.#counters.all) this.#wake(counter)
  }

  /**
   * Closes the queue. New requests fail, and waiting requests end.
   *
   * @param within milliseconds for waiting requests that may finish
   */
  close(within: number): Promise<void> {
    this.#arrive(NEVER, NEVER)
    this.#waiters.closing = true
    const { times } = this.#waiters
    const by = this.#gate.clock.monotonic() + within
    const finish = this.#settings.onClose === 'finish'
    // Requests at the store end with its reply.
    this.#waiters.closesAt = finish ? by : by - within
    for (const request of [...times.items]) {
      if (request.reservations !== undefined) continue
      const opensAt = request.line?.counter?.at ?? 0
      // An infinite time is unknown: a request in flight may end in time.
      if (!finish || (opensAt > by && opensAt < Number.POSITIVE_INFINITY)) this.#waiters.fail(request, 'closed')
      else if (request.at > by) times.set(request, by)
    }
    for (const request of this.#waiters.after(finish ? by : Number.NEGATIVE_INFINITY)) this.#waiters.fail(request, 'closed')
    this.#arm()
    return new Promise((resolve) => this.#waiters.whenEmpty(resolve))
  }

  /** Decides a new request. It is allowed immediately if it fits, and no request waits for its key or for the same counter. */
  #decide(request: Request<D>, now: number): void {
    const { key, wanted } = request
    if (this.#gate.waits || this.#counters.lines.has(key)) {
      this.#join(request, now)
      return
    }
    const seen = this.#gate.peek(key, wanted)
    const others = seen.allowed ? this.#counters.contended(seen) : undefined
    const pause = seen.allowed && others === undefined ? this.#gate.pause(key, wanted, false) : undefined
    if (others !== undefined) this.#join(request, now, others)
    else if (pause !== undefined) this.#join(request, now, this.#counters.locate(pause.by, now + pause.time))
    else {
      const decision = seen.allowed ? (this.#gate.take(key, wanted) as D) : seen
      if (decision.allowed) this.#waiters.allow(request, decision, now)
      else this.#joinRejected(request, decision, now)
    }
  }

  /** Makes a rejected request wait for the counter that rejected it, unless it can't make its timeout. */
  #joinRejected(request: Request<D>, rejection: D, now: number): void {
    if (this.#admission.keeps(request, rejection, now)) this.#join(request, now, this.#counters.closed(rejection, now))
  }

  /** @param counter the counter to wait for if the key has no waiting requests. Without one, the store decides */
  #join(request: Request<D>, now: number, counter?: Counter<D>): void {
    const { key, wanted } = request
    // A request that waits again returns to its position, before the ones behind it.
    const obstacle = request.entered ? undefined : this.obstacle(key, wanted)
    if (obstacle !== undefined) {
      this.#waiters.fail(request, obstacle.why, obstacle.soonest)
      if (counter !== undefined) this.#counters.tidy(counter)
      return
    }
    const found = this.#counters.lines.get(key)
    const line = found ?? new Line<D>(key)
    this.#counters.lines.set(key, line)
    line.size++
    this.#counters.waits.add(line.counter?.policy ?? '', 1)
    line.add(request)
    request.line = line
    this.#waiters.enter(request)
    if (found?.counter !== undefined) return
    const own = counter ?? this.#counters.locate({ policy: undefined, key }, now)
    this.#counters.put(line, own)
    if (counter === undefined || this.#gate.reservesAhead(own.policy)) this.#admission.serve(own, now, 1, true)
  }

  /**
   * Puts a request back into its line because it can't use its reservation.
   *
   * @param rejection the decision that rejected it at the reserved time
   */
  #waitAgain(request: Request<D>, now: number, rejection: D | undefined): void {
    const seen = this.#gate.peek(request.key, request.wanted)
    if (now >= request.at) this.#waiters.fail(request, 'timeout')
    else if (rejection !== undefined) {
      if (!this.#admission.keeps(request, rejection, now)) return
      const counter = this.#counters.closed(rejection, now)
      this.#join(request, now, counter)
      const { line } = request
      // The counter had capacity again: the request has gone, or all requests of the line are at the store.
      if (line?.first === undefined) return
      // The other requests of the line wait for the same counter.
      if (line.counter !== counter) {
        this.#counters.takeOut(line)
        this.#counters.put(line, counter)
      }
      if (seen.parts.find(({ policy }) => policy?.name === rejection.policy?.name)?.allowed !== true) return
      // The reason is unknown and may last, for example if the store can't read the key.
      line.pausedUntil = now + Math.max(opensIn(rejection), request.lengthenPause())
      this.#counters.open.set(counter, line.pausedUntil)
    } else if (seen.allowed) this.#join(request, now)
    else this.#joinRejected(request, seen, now)
  }

  #serveNow(counter: Counter<D> | undefined): void {
    if (counter === undefined || counter.place < 0) return
    this.#serving = true
    try {
      this.#admission.serve(counter, this.#gate.clock.monotonic(), TURN)
    } finally {
      this.#serving = false
    }
  }

  #wake(counter: Counter<D> | undefined): void {
    if (counter === undefined || counter.place < 0) return
    // Turns begin only at the end of an interval, for which other processes have waited too.
    counter.pace = undefined
    this.#counters.open.set(counter, this.#gate.clock.monotonic())
    this.#arm()
  }

  /** The time of the next step. */
  get #next(): number {
    const { times, due } = this.#waiters
    return Math.min(this.#counters.open.first?.at ?? NEVER, times.first?.at ?? NEVER, due.first?.at ?? NEVER)
  }

  #arm(): void {
    this.#waiters.report()
    this.#alarm.set(this.#next)
  }

  /**
   * Decides new requests, and requests whose time has come. Units count at the decision. So each step decides only a few requests, which
   * start before the next step. If many started late, more would start within an interval than the limit allows.
   *
   * @param left requests whose time has come that may still be checked in this turn of the event loop
   * @param few requests to decide in one step
   */
  #step(left: number, few: number): void {
    const { clock, waits } = this.#gate
    const now = clock.monotonic()
    // If the store decides, one reply contains several requests anyway.
    const most = waits ? TURN : few
    const looked = left > 0 ? this.#serve(now, Math.min(left, most)) : 0
    this.#arrive(most, now + QUICK)
    if (this.#arrivals.first !== undefined || (left > looked && this.#next <= now))
      queueMicrotask(() => this.#step(left - looked, clock.monotonic() - now < QUICK ? 2 * few : 1))
    else this.#arm()
  }

  /** @returns the number of checked requests whose time had come */
  #serve(now: number, most: number): number {
    let left = most
    const { times, due } = this.#waiters
    for (let reservations = due.first; reservations !== undefined && reservations.at <= now && left > 0; reservations = due.first) {
      left--
      this.#waiters.release(reservations)
    }
    this.#serving = true
    try {
      for (
        let counter = this.#counters.open.first;
        counter !== undefined && counter.at <= now && left > 0;
        counter = this.#counters.open.first
      ) {
        left -= Math.max(1, this.#admission.serve(counter, now, left))
      }
    } finally {
      this.#serving = false
    }
    for (let request = times.first; request !== undefined && request.at <= now && left > 0; request = times.first) {
      left--
      this.#waiters.fail(request, 'timeout')
    }
    return most - left
  }
}
