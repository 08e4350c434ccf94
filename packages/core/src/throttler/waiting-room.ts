import { changed, type Decision } from '../decide/decision.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import { type CheckOptions, hasOptions } from '../decide/request-path.ts'
import { parseDuration } from '../options/duration.ts'
import { AcquireError, type AcquireFailure } from '../queue/acquire-error.ts'
import type { AskedNow } from '../queue/asked.ts'
import { listen, unlisten } from '../queue/listen.ts'
import { Occupancy } from '../queue/occupancy.ts'
import type { AcquireOptions, Leaving } from '../queue/options.ts'
import type { Queues } from '../queue/queues.ts'
import type { QueueSettings } from '../queue/settings.ts'
import { show, WeirError } from '../report/errors.ts'
import { reasonOf } from '../report/show.ts'
import { keptOpen } from '../time/clock.ts'
import { Retried } from '../time/retried.ts'
import { Coming } from './coming.ts'
import type { Delayed, Delays } from './delays.ts'
import { countedKey } from './limiters-of.ts'
import type { AcquireHost, WaitingAtStore } from './open-queues.ts'
import { checkDecision } from './refunds.ts'

/** The members of the throttler that are needed here. */
interface WaitingHost extends AcquireHost {
  readonly closed: boolean
  readonly rules: readonly PolicyOptions<never>[]
  readonly policies: readonly Policy[]
  /** Loads the code that lets requests wait at the store. Absent without one. */
  readonly waitingAtStore: (() => Promise<WaitingAtStore>) | undefined
}

/**
 * Requests of a throttler that wait for their turn, or are delayed instead of rejected. The code for that is loaded with the first of them.
 * If it can't be loaded, limits and paces still apply, but no request waits for a turn.
 */
export class WaitingRoom {
  readonly #host: WaitingHost
  readonly #settings: QueueSettings
  readonly #queues: Retried<Queues<Decision>>
  readonly #delays: Retried<Delays>
  /** Ends the waits of requests while there are no queues. */
  readonly #waiting = new Set<(why: AcquireFailure | undefined) => void>()
  readonly #occupancy: Occupancy
  readonly #coming = new Coming()
  /** The same as `#queues.value`, but set before the first request enters. */
  #opened: Queues<Decision> | undefined
  #closing = false

  constructor(host: WaitingHost, settings: QueueSettings) {
    this.#host = host
    this.#settings = settings
    this.#occupancy = new Occupancy(settings.maxWaiting)
    const failed = (cause: unknown, first: boolean): void => {
      if (!first) return
      const what = `Code of the queues could not be loaded (${reasonOf(cause)}). Weir tries again. Until it succeeds, limits apply, but no request waits. Check that the files of the package are readable.`
      host.warn(new WeirError('WEIR_NOT_LOADED', what, { cause }), 'waiting')
    }
    this.#queues = new Retried(() => this.#openQueues(), host.clock, failed)
    this.#delays = new Retried(
      async () => {
        const [queues, { Delays }] = await Promise.all([this.#queues.load(), import('./delays.ts')])
        if (queues === undefined) throw new Error('The queues could not be loaded.')
        return new Delays(host, queues, settings.maxWait)
      },
      host.clock,
      failed,
    )
  }

  /** The queues, once they are loaded. */
  get queues(): Queues<Decision> | undefined {
    return this.#queues.value
  }

  /** Implements the throttler's `waiting`. */
  get waiting(): number {
    return (this.#opened?.size ?? 0) + this.#coming.waiting(this.#host) + this.#occupancy.size
  }

  /** Implements the throttler's `acquire`. */
  acquire(key: string, options: AcquireOptions | undefined, returns = false): Promise<Decision> {
    const queues = this.#queues.value
    // No async function, because a waiting request must need little memory.
    if (typeof key !== 'string' || queues === undefined || !this.#coming.none) return this.#acquireLater(key, options, returns)
    return keptOpen(this.#host.clock, queues.acquire(countedKey(key), options, returns))
  }

  #acquireLater(key: string, options: AcquireOptions | undefined, returns: boolean): Promise<Decision> {
    const acquired = new Promise<Decision>((resolve, reject) => {
      const counted = countedKey(key)
      const arrive = this.#coming.add({ key: counted, options })
      const enter = (queues: Queues<Decision> | undefined): void => {
        arrive()
        if (queues === undefined) resolve(this.#acquireAlone(counted, options, returns))
        else queues.enter(counted, options, returns, resolve, reject)
      }
      this.#queues.load().then(enter).catch(reject)
    })
    return keptOpen(this.#host.clock, acquired)
  }

  /** Allows a fitting request without queues. Any other request waits until the code of the queues is loaded. */
  async #acquireAlone(key: string, options: AcquireOptions = {}, returns: boolean): Promise<Decision> {
    const { clock, path, requests } = this.#host
    const { cost, limit, signal } = options
    const { maxWait } = this.#settings
    const timeout = options.timeout === undefined ? (returns ? 0 : maxWait) : parseDuration(options.timeout, 'timeout', 0, maxWait)
    if (this.#closing) throw this.#failure('closed', key)
    const decision = await path.take(key, { cost, limit })
    if (decision.allowed) {
      requests.allowed++
      return decision.delayMs > 0 ? await this.hold(decision, signal) : decision
    }
    const begun = clock.monotonic()
    const why = (await this.#wait(timeout, signal, true)) ?? 'timeout'
    const queues = this.#queues.value
    if (queues !== undefined)
      return await queues.acquire(key, { ...options, timeout: Math.max(0, timeout - (clock.monotonic() - begun)) }, returns)
    requests.reasons.queue++
    if (returns && why !== 'aborted' && why !== 'closed') return decision
    throw this.#failure(why, key, signal, decision.retryAfterMs)
  }

  /** Waits for the `delayMs` of an allowed decision. */
  hold(decision: Decision, signal: Leaving | undefined, client?: string): Promise<Decision> {
    return keptOpen(this.#host.clock, this.#hold(decision, signal, client))
  }

  async #hold(decision: Decision, signal: Leaving | undefined, client?: string): Promise<Decision> {
    const queues = this.#queues.value ?? (await this.#queues.load())
    if (queues !== undefined) return await queues.hold(decision, signal, client)
    const why = this.#closing ? 'closed' : await this.#wait(decision.delayMs, signal, false, client)
    if (why === undefined) return changed(decision, { delayMs: 0 })
    this.#host.giveBack(decision)
    throw this.#failure(why, decision.key, signal)
  }

  /** Implements the throttler's `waitFor`. The decision was already counted as allowed. */
  async holdCounted(decision: Decision, signal: AbortSignal | undefined, client?: string): Promise<Decision> {
    checkDecision(decision)
    if (!(decision.delayMs > 0)) return decision
    try {
      return await this.hold(decision, signal, client)
    } catch (error) {
      const { requests } = this.#host
      requests.allowed--
      if (signal?.aborted !== true) requests.reasons.queue++
      throw error
    }
  }

  /** Implements the throttler's `checkAsync` if policies delay requests. */
  check(key: string, options: number | CheckOptions | undefined): Promise<Decision> {
    return keptOpen(this.#host.clock, this.#check(key, options))
  }

  async #check(key: string, options: number | CheckOptions | undefined): Promise<Decision> {
    const asked = hasOptions(options) ? options : { cost: options }
    const delays = this.#delays.value ?? (await this.#delays.load())
    return await (delays === undefined ? this.#host.path.take(key, options) : delays.check(key, asked))
  }

  /** Implements the throttler's `decideAsync` if policies delay requests. */
  decide(asked: AskedNow, request: Delayed | undefined): Decision | Promise<Decision> {
    const loaded = this.#delays.value
    const { keys, costs, places, limits } = asked
    const decision =
      loaded?.decide(asked, request) ??
      this.#delays
        .load()
        .then((delays) => delays?.decide(asked, request) ?? this.#host.path.decideAsync(keys, costs, places, places.length, limits))
    return decision instanceof Promise ? keptOpen(this.#host.clock, decision) : decision
  }

  /** Loads the code early, so that most requests are decided immediately from the beginning. */
  loadDelays(): void {
    void this.#delays.load()
  }

  async #openQueues(): Promise<Queues<Decision>> {
    const [{ openQueues }, atStore] = await Promise.all([import('./open-queues.ts'), this.#host.waitingAtStore?.()])
    const queues = openQueues(this.#host, this.#settings, atStore)
    if (this.#host.closed) void queues.close(0)
    this.#opened = queues
    return queues
  }

  /**
   * Waits without queues, and so without an order of arrival.
   *
   * @param loading whether the wait ends as soon as there are queues
   * @returns the reason for which the request can't wait any longer. Undefined at its timeout
   */
  #wait(milliseconds: number, signal: Leaving | undefined, loading: boolean, client?: string): Promise<AcquireFailure | undefined> {
    if (signal?.aborted === true) return Promise.resolve('aborted')
    if (this.#occupancy.isFull(client)) return Promise.resolve('queue-full')
    this.#occupancy.add(client)
    const { clock } = this.#host
    const release = clock.hold?.()
    return new Promise((resolve) => {
      let forget: (() => void) | undefined
      const end = (why: AcquireFailure | undefined): void => {
        clock.clearTimeout(timer)
        forget?.()
        if (signal !== undefined) unlisten(signal, leave)
        this.#waiting.delete(end)
        this.#occupancy.remove(client)
        release?.()
        resolve(why)
      }
      const leave = (): void => end('aborted')
      const timer = clock.setTimeout(() => end(undefined), milliseconds)
      if (signal !== undefined) listen(signal, leave)
      this.#waiting.add(end)
      if (loading) forget = this.#queues.whenLoaded(() => end(undefined))
    })
  }

  #failure(why: AcquireFailure, key: string, signal?: Leaving, retryAfterMs?: number): AcquireError {
    const what = `A request of key ${show(key)} can't wait (${why}), because the code of the queues could not be loaded yet. Try again later.`
    return new AcquireError(why, what, retryAfterMs, signal?.aborted === true ? { cause: signal.reason } : undefined)
  }

  /** Finishes or rejects waiting requests, within this many milliseconds. */
  async close(timeout: number): Promise<void> {
    this.#closing = true
    for (const end of [...this.#waiting]) end('closed')
    const queues = this.#queues.value ?? (await this.#queues.attempt)
    this.#queues.stop()
    this.#delays.stop()
    await queues?.close(timeout)
  }
}
