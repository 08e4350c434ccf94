import type { Decision } from '../decide/decision.ts'
import type { CheckOptions } from '../decide/request-path.ts'
import type { AskedNow } from '../queue/asked.ts'
import type { AcquireOptions } from '../queue/options.ts'
import type { Queues } from '../queue/queues.ts'
import type { QueueSettings } from '../queue/settings.ts'
import type { Delays, Holding } from './delays.ts'
import { countedKey } from './limiters-of.ts'
import type { AcquireHost } from './open-queues.ts'

/** Requests of a throttler that wait for their turn, or are held instead of being refused. The code for that is loaded with the first of them. */
export class WaitingRoom {
  readonly #host: AcquireHost & { readonly closed: boolean }
  readonly #settings: QueueSettings
  #queues: Queues<Decision> | undefined
  #loading: Promise<Queues<Decision>> | undefined
  #delays: Delays | undefined
  #loadingDelays: Promise<Delays> | undefined

  constructor(host: AcquireHost & { readonly closed: boolean }, settings: QueueSettings) {
    this.#host = host
    this.#settings = settings
  }

  /** Its requests, once there were some. */
  get queues(): Queues<Decision> | undefined {
    return this.#queues
  }

  /** As the throttler's `acquire`. */
  acquire(key: string, options: AcquireOptions | undefined): Promise<Decision> {
    // No async function: what waits is to be small.
    if (typeof key !== 'string' || this.#queues === undefined) return this.#acquireLater(key, options)
    return this.#queues.acquire(countedKey(key), options)
  }

  async #acquireLater(key: string, options: AcquireOptions | undefined): Promise<Decision> {
    const counted = countedKey(key)
    return (await this.#load()).acquire(counted, options)
  }

  /** Waits for the `delay` of an allowed decision. */
  async hold(decision: Decision, signal: AbortSignal | undefined): Promise<Decision> {
    const queues = this.#queues ?? (await this.#load())
    return await queues.hold(decision, signal)
  }

  /** As the throttler's `checkAsync`, where policies hold requests. */
  async check(key: string, options: number | CheckOptions | undefined): Promise<Decision> {
    return (await this.loadDelays()).check(key, options)
  }

  /** As the throttler's `decideAsync`, where policies hold requests. */
  decide(asked: AskedNow, holding: Holding | undefined): Decision | Promise<Decision> {
    return this.#delays?.decide(asked, holding) ?? this.loadDelays().then((delays) => delays.decide(asked, holding))
  }

  /** So that most requests are decided about at once from the beginning. */
  loadDelays(): Promise<Delays> {
    this.#loadingDelays ??= Promise.all([this.#load(), import('./delays.ts')]).then(([queues, { Delays }]) => {
      this.#delays = new Delays(this.#host, queues, this.#settings.maxWait)
      return this.#delays
    })
    return this.#loadingDelays
  }

  #load(): Promise<Queues<Decision>> {
    this.#loading ??= import('./open-queues.ts').then(({ openQueues }) => {
      const queues = openQueues(this.#host, this.#settings)
      this.#queues = queues
      if (this.#host.closed) void queues.close(0)
      return queues
    })
    return this.#loading
  }

  /** Ends with requests that wait, within so many milliseconds. */
  async close(deadline: number): Promise<void> {
    const queues = this.#queues ?? (await this.#loading)
    await queues?.close(deadline)
  }
}
