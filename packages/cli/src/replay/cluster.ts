import type { Coordination, Decision, PlannedPolicyOptions, Policy, RequestPolicyOptions, RequestSlotPolicyOptions } from '@weir/core'
import { adapterOf, createGuard, type Guard } from '@weir/core/adapter'
import { snapshot } from '@weir/core/inspect'
import type { Override } from '@weir/core/rules'
import { isLoadingCode, type StoreConnection, type StoreNode } from '@weir/core/sync'
import { NodeClock, SeededRandom, SimulatedStore, type StoreStatistics, VirtualTime } from '@weir/testing'
import type { LogRecord } from '../log/record.ts'
import { logReader } from './reader.ts'

export type LogPolicy = RequestPolicyOptions<LogRecord> | RequestSlotPolicyOptions<LogRecord> | PlannedPolicyOptions<LogRecord>
export type LogDecision = Decision | undefined | Promise<Decision | undefined>

/** A decision, and a function that frees its slots. */
export interface Asked {
  readonly decision: LogDecision
  release(decided: Decision): void
}

/** Processes, and the network between them and their store. */
export interface ClusterOptions {
  readonly policies: readonly LogPolicy[]
  /** Limits of single keys, each until a time of the log. */
  readonly overrides: readonly Override[]
  readonly nodes: number
  /** Milliseconds to the store and back. */
  readonly roundTrip: number
  /** Keys of a policy that a process, and the exact count, keep at most at one time. */
  readonly maxKeys: number
  /** Seed of the load balancer and of the processes' clocks. */
  readonly seed: number
}

/** Virtual milliseconds for the start of the processes, before the first request. */
const BOOT = 2_000
/** Longer than the default, because over weeks of a log heartbeats would be most of the work. All processes stay alive anyway. */
const HEARTBEAT = 10_000
/** Milliseconds after the last request until processes have sent all counts, besides two round trips. */
const SETTLING = 5_000
/** Milliseconds before the next request in which processes sync again after a silence, besides two round trips. */
const WAKING = 2_000
/** Shorter silences need hardly more heartbeats than the syncs after a skipped one. */
const SHORTEST_SKIP = 20_000
/** The resources that a cluster has used. */
export interface ClusterUsage {
  readonly store: StoreStatistics
  /** For each policy the most keys that one process kept at a look, and whether a process had more than `maxKeys`. */
  readonly keys: readonly { readonly held: number; readonly overflowing: boolean }[]
  /** Warnings of the processes, each once. */
  readonly warnings: readonly string[]
}

/** A store at which processes stay alive without heartbeats, so that they can skip a silence. */
class PatientStore extends SimulatedStore {
  override open(node: StoreNode): StoreConnection {
    const connection = super.open(node)
    return {
      sync: ({ heartbeat, ...rest }) =>
        connection.sync({ ...rest, ...(heartbeat !== undefined && { heartbeat: { ...heartbeat, ttl: Number.MAX_SAFE_INTEGER } }) }),
      ...(connection.decider !== undefined && { decider: connection.decider.bind(connection) }),
      close: () => connection.close(),
    }
  }
}

/** Processes with the released code, in virtual time. One more process counts all requests alone, which is an exact central count. */
export class ReplayCluster {
  readonly #time: VirtualTime
  readonly #store: PatientStore
  readonly #random: SeededRandom
  readonly #clocks: NodeClock[] = []
  readonly #options: ClusterOptions
  readonly #guards: Guard<LogRecord, never[]>[] = []
  readonly #warnings = new Set<string>()
  #exact: Guard<LogRecord, never[]> | undefined
  #keys: ClusterUsage['keys'] = []
  /** A policy with more than `maxKeys` keys at one time. The exact count then counts further keys together, so it is no longer exact. */
  crowded: string | undefined

  /** @param start time of the first request, in milliseconds since the epoch */
  constructor(options: ClusterOptions, start: number) {
    const { roundTrip, seed } = options
    this.#options = options
    // Each start gets different random numbers.
    this.#random = new SeededRandom(`${seed} ${start}`)
    this.#time = new VirtualTime(-BOOT, start)
    this.#store = new PatientStore({
      time: this.#time,
      random: this.#random.stream('network'),
      network: { latency: roundTrip / 2 },
    })
  }

  /** Starts the processes, and waits until they have joined the store. */
  async boot(): Promise<void> {
    const { nodes, policies } = this.#options
    for (let node = 0; node < nodes; node++) {
      await this.#time.runUntil(-BOOT + (node * BOOT) / 2 / nodes)
      const guard = this.#guard(policies, HEARTBEAT, `node ${node}`, true)
      // Lazily loaded code takes real time, and virtual time stands still until it is there.
      await adapterOf(guard.throttler).inspected.coordinator?.loading
      this.#guards.push(guard)
    }
    this.#exact = this.#guard(policies.map(locally), HEARTBEAT, 'exact', false)
    await this.#store.opened()
    if (this.#options.overrides.length > 0) this.#override()
    await this.#time.runUntil(0)
  }

  #guard(policies: readonly LogPolicy[], heartbeat: number, name: string, shared: boolean): Guard<LogRecord, never[]> {
    const random = this.#random.stream(name)
    const clock = new NodeClock(this.#time, { origin: random.next() * 1e6 })
    this.#clocks.push(clock)
    const guard = createGuard<LogRecord, never[]>(
      {
        policies,
        clock,
        random: () => random.next(),
        maxKeys: this.#options.maxKeys,
        ...(shared && { heartbeat, store: this.#store }),
      },
      logReader,
    )
    guard.throttler.on('warning', ({ error }) => {
      if (shared) this.#warnings.add(error.message)
    })
    guard.throttler.on('overflow', ({ policy }) => {
      if (!shared) this.crowded ??= policy
    })
    // The store never fails in a replay. The listener prevents the warning about a missing one.
    guard.throttler.on('storeDown', () => {})
    return guard
  }

  /** Applies the overrides of keys, and removes each at its end. */
  #override(): void {
    const { policies, overrides } = this.#options
    const open = overrides.filter(({ until }) => until > this.now)
    const limits = open.flatMap(({ policy, key, limit }) => namesOf(policy, policies).map((name) => ({ policy: name, key, limit })))
    for (const { throttler } of this.#guards) throttler.update(policies, limits)
    this.#exact?.throttler.update(policies.map(locally), limits)
    const next = Math.min(...open.map(({ until }) => until))
    if (Number.isFinite(next)) this.#time.at(next - this.#time.epoch, () => this.#override())
  }

  /** The checked policies with their defaults, after the boot. */
  get policies(): readonly Policy[] {
    const [guard] = this.#guards
    return guard === undefined ? [] : guard.throttler.policies
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.#time.epoch + this.#time.now
  }

  /**
   * Advances virtual time. Undefined if no event happened that needs waiting.
   *
   * @param quiet when the last request ended, or was sent
   */
  until(time: number, quiet: number): Promise<void> | undefined {
    const moment = time - this.#time.epoch
    if (moment < this.#time.nextAt) {
      this.#time.pass(Math.max(moment, this.#time.now))
      return undefined
    }
    const from = quiet - this.#time.epoch
    const margin = 2 * this.#options.roundTrip
    return moment - from > SHORTEST_SKIP + 2 * margin
      ? this.#skip(from + SETTLING + margin, moment - WAKING - margin).then(() => this.#runUntil(moment))
      : this.#runUntil(moment)
  }

  /**
   * Suspends all processes in a silence, because otherwise heartbeats would be nearly all work of a sparse log. No count changes meanwhile,
   * and the processes sync before the next request.
   */
  async #skip(from: number, to: number): Promise<void> {
    const time = this.#time
    await this.#runUntil(from)
    // A message that is under way arrives first, because a process would take its late answer for an outage. If the store is far away,
    // there is always one.
    const latest = Math.min(time.now + HEARTBEAT + 2 * this.#options.roundTrip, to)
    while (time.nextAt <= Math.min(time.now + this.#options.roundTrip, latest)) await this.#runUntil(time.nextAt)
    for (const clock of this.#clocks) clock.stall(to)
    await this.#runUntil(to)
  }

  /** Runs all events up to a moment. Awaits promises without a turn of the event loop, which takes longer than most events. */
  async #runUntil(moment: number): Promise<void> {
    const time = this.#time
    while (time.nextAt <= moment) {
      if (!time.step()) continue
      await time.drained()
      if (isLoadingCode()) await time.settled()
    }
    if (moment > time.now) time.pass(moment)
  }

  /** Advances to the next event, without a request. */
  async step(): Promise<void> {
    await this.#time.runUntil(this.#time.nextAt)
  }

  /** Sends a request to a random process, like a load balancer. */
  decide(record: LogRecord): Asked {
    const { length } = this.#guards
    return this.#ask(this.#guards[length === 1 ? 0 : this.#random.below(length)] as Guard<LogRecord, never[]>, record)
  }

  /** Decides the same request by the exact count. */
  decideExactly(record: LogRecord): Asked {
    return this.#ask(this.#exact as Guard<LogRecord, never[]>, record)
  }

  /** Schedules a function after a number of virtual milliseconds. */
  after(milliseconds: number, run: () => void): void {
    this.#time.at(this.#time.now + milliseconds, run)
  }

  #ask(guard: Guard<LogRecord, never[]>, record: LogRecord): Asked {
    return { decision: guard.check(record), release: (decided) => guard.throttler.release(decided) }
  }

  /** Waits for promises that were created meanwhile. Undefined if there are none. */
  settled(waiting: boolean): Promise<void> | undefined {
    return this.#time.takeTouched() || waiting ? this.#time.settled() : undefined
  }

  /** Notes how many keys the processes keep. It takes longer than a request. */
  look(): void {
    const nodes = this.#guards.map(({ throttler }) => snapshot(throttler, { top: 1, blocked: 1 }).policies)
    this.#keys = this.policies.map((_, place) => ({
      held: Math.max(this.#keys[place]?.held ?? 0, ...nodes.map((policies) => policies[place]?.keys ?? 0)),
      overflowing: this.#keys[place]?.overflowing === true || nodes.some((policies) => policies[place]?.overflowing === true),
    }))
  }

  /** Resources used since the boot. */
  get usage(): ClusterUsage {
    this.look()
    return { store: this.#store.statistics, keys: this.#keys, warnings: [...this.#warnings] }
  }

  /** Stops all clocks, so that no timer fires any more. */
  stop(): void {
    for (const clock of this.#clocks) clock.stop()
  }
}

/** The policies to which an override applies. An override of a policy with plans applies to all its plans. */
function namesOf(policy: string, policies: readonly LogPolicy[]): readonly string[] {
  const whole = policies.find(({ name = 'default' }) => name === policy)
  return whole !== undefined && 'plans' in whole ? Object.keys(whole.plans).map((plan) => `${policy}:${plan}`) : [policy]
}

/** Whether the policy limits requests in flight. */
export function hasSlots({ algorithm }: LogPolicy): boolean {
  return algorithm?.slots !== undefined
}

/** The policy for a process that counts alone. */
export function locally(policy: LogPolicy): LogPolicy {
  const { storeTimeout: _, ...rest } = policy as Extract<LogPolicy, { readonly storeTimeout?: unknown }>
  return { ...rest, coordination: 'local' } as LogPolicy
}

/** The policy with another coordination. */
export function coordinated(policy: LogPolicy, coordination: Coordination): LogPolicy {
  // Slots support only `local` and `leased`.
  if (hasSlots(policy) && coordination !== 'local' && coordination !== 'leased') return policy
  const { storeTimeout, ...rest } = policy as Extract<LogPolicy, { readonly storeTimeout?: unknown }>
  const waits = coordination === 'central' || coordination === 'leased'
  return { ...rest, coordination, ...(waits && storeTimeout !== undefined && { storeTimeout }) } as LogPolicy
}
