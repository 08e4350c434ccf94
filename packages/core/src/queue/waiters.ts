import { show } from '../report/errors.ts'
import { AcquireError, type AcquireFailure } from './acquire-error.ts'
import { Chain } from './chain.ts'
import type { Gate } from './gate.ts'
import type { Answer, Request } from './line.ts'
import { Schedule } from './schedule.ts'
import type { QueueSettings } from './settings.ts'

/** All requests that wait, and how each of them ends: once, and whatever it held is free then. */
export class Waiters<D extends Answer> {
  /** Requests by when their time is over. */
  readonly times: Schedule<Request<D>> = new Schedule()
  /** Requests that are held, by when they go. */
  readonly going: Schedule<Request<D>> = new Schedule()
  /** Those that were let in and keep a pace, of each counter in their order. */
  readonly #held = new Map<string, Chain<Request<D>>>()
  readonly #gate: Gate<D>
  readonly #settings: QueueSettings
  /** Is called when times have changed for a reason from outside. */
  readonly #changed: () => void
  /** Is told before a request ends. */
  readonly #leave: (request: Request<D>) => void
  /** Whether the throttler is closing: who does not go in time is told so. */
  closing = false
  #size = 0
  #release: (() => void) | undefined
  #empty: (() => void) | undefined

  constructor(gate: Gate<D>, settings: QueueSettings, leave: (request: Request<D>) => void, changed: () => void) {
    this.#changed = changed
    this.#gate = gate
    this.#settings = settings
    this.#leave = leave
  }

  /** How many there are. */
  get size(): number {
    return this.#size
  }

  /** Whether there is no room for one more. */
  get full(): boolean {
    return this.#size >= this.#settings.maxWaiting
  }

  /** Calls a function as soon as nobody waits. */
  whenEmpty(then: () => void): void {
    if (this.#size === 0) then()
    else this.#empty = then
  }

  /** A request waits until `at`. */
  enter(request: Request<D>, at: number): void {
    this.#scheduleOf(request).set(request, at)
    if (request.entered) return
    request.entered = true
    // Timers of a throttler don't keep the process alive; somebody who waits does.
    if (this.#size++ === 0) this.#release = this.#gate.clock.hold?.()
    const { signal } = request.wanted
    if (signal === undefined) return
    request.onAbort = () => {
      this.giveBack(request)
      this.fail(request, 'aborted')
      this.#changed()
    }
    signal.addEventListener('abort', request.onAbort, { once: true })
  }

  /** A request has been let in; where a pace is kept it waits for that long. */
  admit(request: Request<D>, decision: D, now: number): void {
    const { delay } = decision
    const late = now + delay > request.at
    if (delay === 0) {
      this.#end(request)
      request.resolve(decision)
    } else if (late || (this.full && !request.entered)) {
      this.#gate.refund(decision)
      this.fail(request, late ? 'timeout' : 'queue-full', delay)
    } else {
      this.#leave(request)
      this.times.remove(request)
      request.held = decision
      request.heldBy = this.#gate.paceMaker(decision)
      let others = this.#held.get(request.heldBy)
      if (others === undefined) this.#held.set(request.heldBy, (others = new Chain()))
      others.push(request)
      this.enter(request, now + delay)
    }
  }

  /** Refunds what a request took that goes no more; those that were to go after it move up. */
  giveBack(request: Request<D>): void {
    const { held } = request
    if (held === undefined) return
    const now = this.#gate.clock.monotonic()
    const sooner = this.#gate.giveBack(held, Math.max(0, request.at - now))
    for (let next = request.after; next !== undefined; next = next.after) this.going.set(next, Math.max(now, next.at - sooner))
  }

  /** The time of a held request has come. */
  release(request: Request<D>): void {
    this.#end(request)
    request.resolve(this.#gate.went(request.held as D))
  }

  /** @param retryAfter milliseconds, where known */
  fail(request: Request<D>, why: AcquireFailure, retryAfter: number | undefined = request.refused?.retryAfter): void {
    const reason = this.closing && why === 'timeout' ? 'closed' : why
    this.#end(request)
    const { refusal, signal } = request.wanted
    if (refusal === 'return' && reason !== 'aborted' && reason !== 'closed') {
      const { refused } = request
      request.resolve(refused?.allowed === false ? refused : this.#gate.peek(request.key, request.wanted))
    } else {
      const cause = reason === 'aborted' ? { cause: signal?.reason } : undefined
      request.reject(new AcquireError(reason, this.#message(reason, request, retryAfter), retryAfter, cause))
    }
  }

  /** It could not be decided about. */
  break(request: Request<D>, error: unknown): void {
    this.#end(request)
    request.reject(error)
  }

  #end(request: Request<D>): void {
    request.settled = true
    if (request.heldBy !== undefined) {
      const others = this.#held.get(request.heldBy) as Chain<Request<D>>
      others.remove(request)
      if (others.first === undefined) this.#held.delete(request.heldBy)
    }
    this.#leave(request)
    this.#scheduleOf(request).remove(request)
    if (request.onAbort !== undefined) request.wanted.signal?.removeEventListener('abort', request.onAbort)
    if (!request.entered || --this.#size > 0) return
    this.#release?.()
    this.#empty?.()
  }

  #scheduleOf({ held }: Request<D>): Schedule<Request<D>> {
    return held === undefined ? this.times : this.going
  }

  #message(reason: AcquireFailure, { key, wanted }: Request<D>, retryAfter: number | undefined): string {
    const what = `A request of the key ${show(key)}`
    const { maxWaitingPerKey, maxWaiting } = this.#settings
    switch (reason) {
      case 'timeout': {
        const when = retryAfter === undefined ? '' : ` It may go in ${retryAfter} ms at the soonest.`
        return `${what} can't go within its timeout of ${wanted.timeout} ms.${when}`
      }
      case 'aborted':
        return `${what} was aborted while it waited.`
      case 'queue-full':
        return `${what} can't wait: ${maxWaitingPerKey} may for one key (queue.maxWaitingPerKey), and ${maxWaiting} in all (queue.maxWaiting).`
      case 'never-fits':
        return `${what} costs more than the limit, and never fits.`
      case 'closed':
        return 'The throttler is closed, or closing.'
    }
  }
}
