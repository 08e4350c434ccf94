import type { Decision, Policy } from '@weir/core'
import type { LogRecord } from '../log/record.ts'
import { type Asked, type ClusterOptions, type ClusterUsage, hasSlots, ReplayCluster } from './cluster.ts'
import { Tally } from './tally.ts'

/** Receives each decision as soon as it is made. */
export type Decided = (record: LogRecord, decision: Decision | undefined) => void

/** The longest time until a pending request must be decided, in milliseconds, besides the interval of its policy. */
const UNDER_WAY = 5_000
/** Requests between two looks at the keys of the processes. */
const LOOK = 1_000

/** Sends the requests of a log through a cluster, and counts the decisions. */
export class Replay {
  readonly #options: ClusterOptions
  readonly #decided: Decided | undefined
  #cluster: ReplayCluster | undefined
  #tally: Tally | undefined
  #usage: ClusterUsage | undefined
  /** Milliseconds after which a request has no effect any more. */
  #memory = 0
  /** The longest time that a request may wait, in milliseconds. */
  #delay = 0
  #last = 0
  /** End of the last request that occupies slots. */
  #busy = Number.NEGATIVE_INFINITY
  #pending = 0
  #requests = 0
  readonly #slots: boolean
  /** Requests without a duration in the log. Their slots are free again immediately. */
  untimed = 0

  /** @throws WeirError (from `add`) for invalid policies */
  constructor(options: ClusterOptions, decided?: Decided) {
    this.#options = options
    this.#slots = options.policies.some(hasSlots)
    this.#decided = decided
  }

  /** Creates the cluster at the first request. */
  async #start(time: number): Promise<void> {
    const cluster = new ReplayCluster(this.#options, Math.floor(time))
    this.#cluster = cluster
    await cluster.boot()
    this.#tally = new Tally(cluster.policies, this.#options.maxKeys)
    this.#memory = Math.max(...cluster.policies.map(memoryOf)) + UNDER_WAY
    this.#delay = Math.max(...cluster.policies.map(delayOf))
    this.#last = time
  }

  /** Adds a request of the log. Undefined if the next one doesn't need to wait. */
  add(record: LogRecord): Promise<void> | undefined {
    const cluster = this.#cluster
    if (cluster === undefined) return this.#start(record.time).then(() => this.add(record))
    if (++this.#requests % LOOK === 0) cluster.look()
    const passed = cluster.until(record.time, Math.max(this.#last + this.#delay, this.#busy))
    this.#last = record.time
    return passed === undefined ? this.#ask(cluster, record) : passed.then(() => this.#ask(cluster, record))
  }

  /** Ends the cluster and the counts, at the end of the log. */
  async close(): Promise<void> {
    await this.#end()
    this.#tally?.close()
  }

  /** The counts. Undefined before the first request. */
  get tally(): Tally | undefined {
    return this.#tally
  }

  /** A policy with more than `maxKeys` keys at one time. The results are wrong from then on. */
  get crowded(): string | undefined {
    return this.#cluster?.crowded
  }

  get usage(): ClusterUsage | undefined {
    return this.#usage
  }

  #ask(cluster: ReplayCluster, record: LogRecord): Promise<void> | undefined {
    const asked = cluster.decide(record)
    const exactly = cluster.decideExactly(record)
    const [decision, exact] = [asked.decision, exactly.decision]
    const waits = decision instanceof Promise || exact instanceof Promise
    if (waits) void this.#settle(cluster, record, asked, exactly)
    else this.#note(record, decision, exact, record.time)
    if (this.#slots) this.#hold(cluster, record, asked, exactly)
    return cluster.settled(waits)
  }

  async #settle(cluster: ReplayCluster, record: LogRecord, asked: Asked, exactly: Asked): Promise<void> {
    this.#pending++
    const [decided, decidedExactly] = await Promise.all([asked.decision, exactly.decision])
    this.#pending--
    this.#note(record, decided, decidedExactly, cluster.now)
  }

  /** Frees the slots of the request when it ends. */
  #hold(cluster: ReplayCluster, record: LogRecord, asked: Asked, exactly: Asked): void {
    const { duration } = record
    if (duration === undefined) this.untimed++
    else this.#busy = Math.max(this.#busy, record.time + duration)
    this.#freed(cluster, asked, duration ?? 0, false)
    this.#freed(cluster, exactly, duration ?? 0, true)
  }

  #freed(cluster: ReplayCluster, { decision, release }: Asked, duration: number, exact: boolean): void {
    const free = (decided: Decision | undefined): void => {
      if (decided?.allowed !== true) return
      const end = (): void => {
        // After `release` the decision has no slots, so the tally reads it first.
        this.#tally?.release(decided, exact)
        release(decided)
      }
      if (duration > 0) cluster.after(duration, end)
      else end()
    }
    if (decision instanceof Promise) void decision.then(free)
    else free(decision)
  }

  #note(record: LogRecord, decision: Decision | undefined, exact: Decision | undefined, now: number): void {
    ;(this.#tally as Tally).add(decision, exact, record.time, now)
    this.#decided?.(record, decision)
  }

  /** Waits for pending requests, and ends the cluster. */
  async #end(): Promise<void> {
    const cluster = this.#cluster
    if (cluster === undefined) return
    this.#cluster = undefined
    const until = this.#last + this.#memory
    while (this.#pending > 0 && cluster.now <= until) await cluster.step()
    this.#usage = cluster.usage
    cluster.stop()
  }
}

/** Milliseconds for which a policy's counts and blocks may matter. */
function memoryOf(policy: Policy): number {
  const { interval, cooldown, cooldownGrowth } = policy
  // The factor is more than 2, because the longest month is a little longer than the usual one.
  return (
    2.1 * interval + Math.max(cooldown, cooldownGrowth === undefined ? 0 : cooldownGrowth.max + cooldownGrowth.memory) + delayOf(policy)
  )
}

function delayOf({ delay }: Policy): number {
  return typeof delay === 'number' ? delay : 0
}
