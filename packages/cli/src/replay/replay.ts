import type { Decision, Policy } from '@weir/core'
import type { LogRecord } from '../log/record.ts'
import { type Asked, type ClusterOptions, type ClusterUsage, hasSlots, ReplayCluster } from './cluster.ts'
import { Tally } from './tally.ts'

/** Told of each decision, as soon as it is made. */
export type Decided = (record: LogRecord, decision: Decision | undefined) => void

/** Milliseconds in which everything that is under way comes to rest. */
const UNDER_WAY = 5_000

/** Sends the requests of a log through a cluster, and counts what becomes of them. */
export class Replay {
  readonly #options: ClusterOptions
  readonly #decided: Decided | undefined
  #cluster: ReplayCluster | undefined
  #tally: Tally | undefined
  #usage: ClusterUsage | undefined
  /** Milliseconds after which nothing is left of what a request changed. */
  #memory = 0
  #last = 0
  /** When the last request ends that holds slots. */
  #busy = Number.NEGATIVE_INFINITY
  #pending = 0
  readonly #slots: boolean
  /** Requests of which the log does not tell how long they took: their slots are free again at once. */
  untimed = 0

  /** @throws WeirError (from `start`) for policies that can't be used */
  constructor(options: ClusterOptions, decided?: Decided) {
    this.#options = options
    this.#slots = options.policies.some(hasSlots)
    this.#decided = decided
  }

  /** The cluster is there when the first request comes, or again when it comes after so long a silence that all has expired. */
  async start(time: number): Promise<void> {
    await this.#end()
    const cluster = new ReplayCluster(this.#options, Math.floor(time))
    this.#cluster = cluster
    await cluster.boot()
    this.#tally ??= new Tally(cluster.policies, this.#options.maxKeys)
    this.#memory = Math.max(...cluster.policies.map(memoryOf)) + UNDER_WAY
    this.#last = time
  }

  /** A request of the log; undefined where nothing has to be waited for before the next. */
  add(record: LogRecord): Promise<void> | undefined {
    const cluster = this.#cluster
    if (cluster === undefined || record.time - Math.max(this.#last, this.#busy) > this.#memory)
      return this.start(record.time).then(() => this.add(record))
    this.#last = record.time
    const passed = cluster.until(record.time)
    return passed === undefined ? this.#ask(cluster, record) : passed.then(() => this.#ask(cluster, record))
  }

  /** The log is over. */
  async close(): Promise<void> {
    await this.#end()
    this.#tally?.close()
  }

  /** The counts; undefined before the first request. */
  get tally(): Tally | undefined {
    return this.#tally
  }

  /** A policy that has met more keys at one time than may be kept: from then on nothing is right. */
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

  /** Slots that the request has taken are free again when it ends. */
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
        // Afterwards it has taken nothing.
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

  /** Waits for requests that are under way, and ends the cluster. */
  async #end(): Promise<void> {
    const cluster = this.#cluster
    if (cluster === undefined) return
    this.#cluster = undefined
    const until = this.#last + this.#memory
    while (this.#pending > 0 && cluster.now <= until) await cluster.step()
    this.#usage = added(this.#usage, cluster.usage)
    cluster.stop()
  }
}

/** How long a policy's counts and blocks may matter, in milliseconds. */
function memoryOf({ interval, cooldown, cooldownGrowth, delay }: Policy): number {
  const held = typeof delay === 'number' ? delay : 0
  // The longest month is a little longer than a usual one.
  return 2.1 * interval + Math.max(cooldown, cooldownGrowth === undefined ? 0 : cooldownGrowth.max + cooldownGrowth.memory) + held
}

function added(before: ClusterUsage | undefined, usage: ClusterUsage): ClusterUsage {
  if (before === undefined) return usage
  const { store } = usage
  return {
    store: {
      exchanges: before.store.exchanges + store.exchanges,
      decisions: before.store.decisions + store.decisions,
      heartbeats: before.store.heartbeats + store.heartbeats,
      entries: before.store.entries + store.entries,
      blocks: before.store.blocks + store.blocks,
      announcements: before.store.announcements + store.announcements,
      failures: before.store.failures + store.failures,
    },
    keys: usage.keys.map(({ held, overflowing }, place) => ({
      held: Math.max(held, before.keys[place]?.held ?? 0),
      overflowing: overflowing || before.keys[place]?.overflowing === true,
    })),
    warnings: [...new Set([...before.warnings, ...usage.warnings])],
  }
}
