import { Alarm } from './alarm.ts'
import type { Gate } from './gate.ts'
import { type Answer, Counter, counterId, Line, Request } from './line.ts'
import { type AcquireOptions, type Wanted, wanted } from './options.ts'
import { Schedule } from './schedule.ts'
import type { QueueSettings } from './settings.ts'
import { Waiters } from './waiters.ts'

/** Requests that are looked at in one turn of the event loop; about a millisecond. */
const TURN = 500

const NEVER = Number.POSITIVE_INFINITY

/** Requests of one counter that the store is asked for at once. */
const MOST_ASKED = 16

/**
 * The lines of a throttler's keys, each at the counter that refused its first request last: a counter that has room lets in one
 * request of a key after another.
 */
export class Queues<D extends Answer> {
  readonly #gate: Gate<D>
  readonly #settings: QueueSettings
  readonly #waiters: Waiters<D>
  readonly #alarm: Alarm
  readonly #lines = new Map<string, Line<D>>()
  readonly #counters = new Map<string, Counter<D>>()
  /** Counters by when they have room again. */
  readonly #open: Schedule<Counter<D>> = new Schedule()
  #number = 0

  constructor(gate: Gate<D>, settings: QueueSettings) {
    this.#gate = gate
    this.#settings = settings
    this.#waiters = new Waiters(
      gate,
      settings,
      (request) => this.#leaveLine(request),
      () => this.#arm(),
    )
    this.#alarm = new Alarm(gate.clock, () => this.#tick())
  }

  /** Requests that wait. */
  get size(): number {
    return this.#waiters.size
  }

  /** As the throttler's. */
  acquire(key: string, options: AcquireOptions | undefined): Promise<D> {
    return new Promise((resolve, reject) => {
      const now = this.#gate.clock.monotonic()
      const request = new Request<D>(key, wanted(options, this.#settings), this.#number++, now, resolve, reject)
      if (this.#waiters.closing) this.#waiters.fail(request, 'closed')
      else if (request.wanted.signal?.aborted === true) this.#waiters.fail(request, 'aborted')
      else if (this.#gate.waits || this.#lines.has(key)) this.#join(request, now)
      else this.#takeOrJoin(request, now)
      this.#arm()
    })
  }

  /** As the throttler's. */
  hold(decision: D, signal: AbortSignal | undefined): Promise<D> {
    return new Promise((resolve, reject) => {
      const now = this.#gate.clock.monotonic()
      const want: Wanted = { ...wanted(undefined, this.#settings), timeout: decision.delay, signal }
      const request = new Request<D>(decision.key, want, this.#number++, now, resolve, reject)
      const why = this.#waiters.closing ? 'closed' : signal?.aborted === true ? 'aborted' : undefined
      if (why === undefined) this.#waiters.admit(request, decision, now)
      else {
        this.#gate.refund(decision)
        this.#waiters.fail(request, why)
      }
      this.#arm()
    })
  }

  /** Counters may have room before the time that was known. */
  nudge(counters: Iterable<Pick<Answer, 'policy' | 'key'>>): void {
    for (const named of counters) this.#wake(this.#counters.get(counterId(named)))
  }

  /** As `nudge`, of all counters. */
  nudgeAll(): void {
    for (const counter of this.#counters.values()) this.#wake(counter)
  }

  /**
   * Takes no more requests, and ends with those that wait.
   *
   * @param within milliseconds that those have which may go on
   */
  close(within: number): Promise<void> {
    this.#waiters.closing = true
    const { times, going } = this.#waiters
    const by = this.#gate.clock.monotonic() + within
    const finish = this.#settings.onClose === 'finish'
    for (const request of [...times.items]) {
      if (!finish || (request.line?.counter?.at ?? 0) > by) this.#waiters.fail(request, 'closed')
      else if (request.at > by) times.set(request, by)
    }
    for (const request of [...going.items]) {
      if (finish && request.at <= by) continue
      this.#waiters.giveBack(request)
      this.#waiters.fail(request, 'closed')
    }
    this.#arm()
    return new Promise((resolve) => this.#waiters.whenEmpty(resolve))
  }

  /** Nobody waits for its key: it goes at once if it may, and nobody waits for the same counter. */
  #takeOrJoin(request: Request<D>, now: number): void {
    const { key, wanted } = request
    const seen = this.#gate.peek(key, wanted)
    if (!seen.allowed) {
      if (this.#keeps(request, seen, now)) this.#join(request, now, this.#counter(counterId(seen), now + seen.retryAfter))
      return
    }
    const others = this.#contended(seen)
    const pause = others === undefined ? this.#gate.pause(key, wanted) : 0
    if (others !== undefined || pause > 0) this.#join(request, now, others ?? this.#counter(counterId(seen), now + pause))
    else this.#taken(request, this.#gate.take(key, wanted) as D, now)
  }

  #taken(request: Request<D>, decision: D, now: number): void {
    if (decision.allowed) this.#waiters.admit(request, decision, now)
    else if (this.#keeps(request, decision, now)) this.#join(request, now, this.#counter(counterId(decision), now + decision.retryAfter))
  }

  /** @param counter what it waits for where nobody waits for its key; without one the store is asked */
  #join(request: Request<D>, now: number, counter?: Counter<D>): void {
    const { key, wanted } = request
    const found = this.#lines.get(key)
    if (this.#waiters.full || (found !== undefined && found.size >= this.#settings.maxWaitingPerKey)) {
      this.#waiters.fail(request, 'queue-full')
      if (counter !== undefined) this.#tidy(counter)
      return
    }
    const { requests, units } = found?.ahead(wanted.priority) ?? { requests: 0, units: 0 }
    const { cost, limit } = wanted
    const soonest = this.#gate.soonest(key, requests + (cost === undefined ? 1 : 0), units + (cost ?? 0), limit)
    if (soonest > wanted.timeout) {
      this.#waiters.fail(request, soonest === Number.POSITIVE_INFINITY ? 'never-fits' : 'timeout', soonest)
      if (counter !== undefined) this.#tidy(counter)
      return
    }
    const line = found ?? new Line<D>(key)
    this.#lines.set(key, line)
    line.size++
    line.add(request)
    request.line = line
    this.#waiters.enter(request, request.at)
    if (found?.counter !== undefined) return
    const own = counter ?? this.#counter(`\u0000${key}`, now)
    this.#put(line, own)
    if (counter === undefined) this.#serve(own, now, 1)
  }

  /** The first counter of a decision that others wait for. */
  #contended({ parts }: D): Counter<D> | undefined {
    if (this.#counters.size === 0) return undefined
    for (const part of parts) {
      const counter = this.#counters.get(counterId(part))
      if (counter !== undefined) return counter
    }
    return undefined
  }

  /** @param at when it has room, if nobody waits for it yet */
  #counter(id: string, at: number): Counter<D> {
    const found = this.#counters.get(id)
    if (found !== undefined) return found
    const made = new Counter<D>(id)
    this.#counters.set(id, made)
    this.#open.set(made, at)
    return made
  }

  #put(line: Line<D>, counter: Counter<D>): void {
    line.counter = counter
    counter.lines.push(line)
  }

  #takeOut(line: Line<D>): void {
    const { counter } = line
    if (counter === undefined) return
    counter.lines.remove(line)
    line.counter = undefined
    this.#tidy(counter)
  }

  #tidy(counter: Counter<D>): void {
    if (counter.lines.first !== undefined || counter.asked > 0) return
    this.#open.remove(counter)
    this.#counters.delete(counter.id)
  }

  /**
   * Lets in whom a counter has room for, one request of a key after another.
   *
   * @param most requests that are looked at
   * @returns how many were
   */
  #serve(counter: Counter<D>, now: number, most: number): number {
    const gate = this.#gate
    let looked = 0
    for (let line = counter.lines.first; line !== undefined && looked < most; line = counter.lines.first) {
      looked++
      const request = line.first as Request<D>
      const { key, wanted } = request
      const seen = gate.peek(key, wanted)
      if (gate.waits && (seen.allowed || gate.asks(key, wanted))) {
        if (counter.asked >= Math.max(1, Math.min(MOST_ASKED, seen.remaining))) {
          // Answers go on with it.
          this.#open.remove(counter)
          return looked
        }
        this.#ask(request, line, counter)
        continue
      }
      const pause = seen.allowed ? gate.pause(key, wanted) : 0
      if (pause > 0) {
        this.#open.set(counter, now + pause)
        return looked
      }
      const decision = seen.allowed ? (gate.take(key, wanted) as D) : seen
      if (decision.allowed) {
        this.#waiters.admit(request, decision, now)
        if (line.counter === counter) this.#rotate(line, counter)
        continue
      }
      if (this.#keeps(request, decision, now) && counterId(decision) !== counter.id) {
        this.#takeOut(line)
        this.#put(line, this.#counter(counterId(decision), now + decision.retryAfter))
      } else if (!request.settled) {
        this.#open.set(counter, now + Math.max(1, decision.retryAfter))
        return looked
      }
    }
    if (counter.lines.first !== undefined) this.#open.set(counter, now)
    else {
      // Answers of the store go on with it.
      this.#open.remove(counter)
      this.#tidy(counter)
    }
    return looked
  }

  /** Whether a request that was refused may go on waiting. It can't if it would not go in time. */
  #keeps(request: Request<D>, decision: D, now: number): boolean {
    request.refused = decision
    const { retryAfter } = decision
    if (now + retryAfter <= request.at) return true
    this.#waiters.fail(request, retryAfter === Number.POSITIVE_INFINITY ? 'never-fits' : 'timeout')
    return false
  }

  /** The next key's turn. */
  #rotate(line: Line<D>, counter: Counter<D>): void {
    counter.lines.remove(line)
    counter.lines.push(line)
  }

  #ask(request: Request<D>, line: Line<D>, counter: Counter<D>): void {
    line.remove(request)
    request.asked = true
    // The question has a deadline of its own.
    this.#waiters.times.remove(request)
    counter.asked++
    if (line.first === undefined) this.#takeOut(line)
    else this.#rotate(line, counter)
    const answered = (decision: D | undefined, error?: unknown) => {
      const now = this.#gate.clock.monotonic()
      counter.asked--
      if (request.settled) {
        if (decision?.allowed === true) this.#gate.refund(decision)
      } else if (decision === undefined) {
        this.#waiters.break(request, error)
      } else if (decision.allowed) this.#waiters.admit(request, decision, now)
      else if (this.#keeps(request, decision, now)) this.#waitAgain(request, line, decision, now)
      if (counter.lines.first === undefined) this.#tidy(counter)
      else if (counter.place < 0) this.#open.set(counter, now)
      this.#arm()
    }
    Promise.resolve(this.#gate.take(request.key, request.wanted)).then(answered, (error) => answered(undefined, error))
  }

  /** The store has refused it. */
  #waitAgain(request: Request<D>, line: Line<D>, decision: D, now: number): void {
    request.asked = false
    line.add(request)
    this.#waiters.times.set(request, request.at)
    const counter = this.#counter(counterId(decision), now)
    if (line.counter !== counter) {
      this.#takeOut(line)
      this.#put(line, counter)
    }
    this.#open.set(counter, now + Math.max(1, decision.retryAfter))
  }

  #leaveLine(request: Request<D>): void {
    const { line } = request
    if (line === undefined) return
    request.line = undefined
    if (!request.asked) line.remove(request)
    line.size--
    if (line.first === undefined) this.#takeOut(line)
    if (line.size === 0) this.#lines.delete(line.key)
  }

  #wake(counter: Counter<D> | undefined): void {
    if (counter === undefined || counter.place < 0) return
    this.#open.set(counter, this.#gate.clock.monotonic())
    this.#arm()
  }

  #arm(): void {
    const { times, going } = this.#waiters
    this.#alarm.set(Math.min(this.#open.first?.at ?? NEVER, times.first?.at ?? NEVER, going.first?.at ?? NEVER))
  }

  #tick(): void {
    const now = this.#gate.clock.monotonic()
    let left = TURN
    const { times, going } = this.#waiters
    for (let request = going.first; request !== undefined && request.at <= now && left > 0; request = going.first) {
      left--
      this.#waiters.release(request)
    }
    for (let counter = this.#open.first; counter !== undefined && counter.at <= now && left > 0; counter = this.#open.first) {
      left -= Math.max(1, this.#serve(counter, now, left))
    }
    for (let request = times.first; request !== undefined && request.at <= now && left > 0; request = times.first) {
      left--
      this.#waiters.fail(request, 'timeout')
    }
    this.#arm()
  }
}
