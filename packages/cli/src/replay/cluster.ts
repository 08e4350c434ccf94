import type { Coordination, Decision, PlannedPolicyOptions, Policy, RequestPolicyOptions, RequestSlotPolicyOptions } from '@weir/core'
import { adapterOf, createGuard, type Guard } from '@weir/core/adapter'
import { snapshot } from '@weir/core/inspect'
import type { Override } from '@weir/core/rules'
import { NodeClock, SeededRandom, SimulatedStore, type StoreStatistics, VirtualTime } from '@weir/testing'
import type { LogRecord } from '../log/record.ts'
import { logReader } from './reader.ts'

export type LogPolicy = RequestPolicyOptions<LogRecord> | RequestSlotPolicyOptions<LogRecord> | PlannedPolicyOptions<LogRecord>
export type LogDecision = Decision | undefined | Promise<Decision | undefined>

/** A decision, and what frees the slots that it took. */
export interface Asked {
  readonly decision: LogDecision
  release(decided: Decision): void
}

/** Nodes, and what lies between them and their store. */
export interface ClusterOptions {
  readonly policies: readonly LogPolicy[]
  /** Limits of single keys, each until some time of the log. */
  readonly overrides: readonly Override[]
  readonly nodes: number
  /** Milliseconds to the store and back. */
  readonly roundTrip: number
  /** Keys of a policy that a process, and the exact count, keep at most at one time. */
  readonly maxKeys: number
  /** Balancing and the nodes' clocks follow from it. */
  readonly seed: number
}

/** Virtual milliseconds in which the nodes start and meet, before the first request. */
const BOOT = 2_000
/** Longer than the default: over weeks of a log heartbeats would be most of the work, and nodes neither come nor go. */
const HEARTBEAT = 10_000
/** The resources that a cluster has used. */
export interface ClusterUsage {
  readonly store: StoreStatistics
  /** For each policy the keys of the node that holds the most, and whether there were more than a node may hold. */
  readonly keys: readonly { readonly held: number; readonly overflowing: boolean }[]
  /** Warnings of the processes, each once. */
  readonly warnings: readonly string[]
}

/** Nodes of the code that ships, in virtual time, and beside them one that counts alone: an exact central count without any distance. */
export class ReplayCluster {
  readonly #time: VirtualTime
  readonly #store: SimulatedStore
  readonly #random: SeededRandom
  readonly #clocks: NodeClock[] = []
  readonly #options: ClusterOptions
  readonly #guards: Guard<LogRecord, never[]>[] = []
  readonly #warnings = new Set<string>()
  #exact: Guard<LogRecord, never[]> | undefined
  /** A policy with more keys at one time than the exact count may keep: it counts the others together from then on. */
  crowded: string | undefined

  /** @param start milliseconds since the epoch: when the first request comes */
  constructor(options: ClusterOptions, start: number) {
    const { roundTrip, seed } = options
    this.#options = options
    // Each start has draws of its own.
    this.#random = new SeededRandom(`${seed} ${start}`)
    this.#time = new VirtualTime(-BOOT, start)
    this.#store = new SimulatedStore({
      time: this.#time,
      random: this.#random.stream('network'),
      network: { latency: roundTrip / 2 },
    })
  }

  /** Lets the nodes start, and meet at the store. */
  async boot(): Promise<void> {
    const { nodes, policies } = this.#options
    for (let node = 0; node < nodes; node++) {
      await this.#time.runUntil(-BOOT + (node * BOOT) / 2 / nodes)
      const guard = this.#guard(policies, HEARTBEAT, `node ${node}`, true)
      // Code that comes with the first policy that needs it takes real time, in which virtual time stands.
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
    // Nothing of a replay fails; a listener keeps the process from being warned.
    guard.throttler.on('storeDown', () => {})
    return guard
  }

  /** Gives keys their own limits, and takes them back when their time is over. */
  #override(): void {
    const { policies, overrides } = this.#options
    const open = overrides.filter(({ until }) => until > this.now)
    const limits = open.flatMap(({ policy, key, limit }) => namesOf(policy, policies).map((name) => ({ policy: name, key, limit })))
    for (const { throttler } of this.#guards) throttler.update(policies, limits)
    this.#exact?.throttler.update(policies.map(locally), limits)
    const next = Math.min(...open.map(({ until }) => until))
    if (Number.isFinite(next)) this.#time.at(next - this.#time.epoch, () => this.#override())
  }

  /** The policies as they were checked and completed, of a booted cluster. */
  get policies(): readonly Policy[] {
    const [guard] = this.#guards
    return guard === undefined ? [] : guard.throttler.policies
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.#time.epoch + this.#time.now
  }

  /** Lets time pass; undefined where nothing happened that has to be waited for. */
  until(time: number): Promise<void> | undefined {
    const moment = time - this.#time.epoch
    if (moment < this.#time.nextAt) {
      this.#time.pass(Math.max(moment, this.#time.now))
      return undefined
    }
    return this.#time.runUntil(Math.max(moment, this.#time.now))
  }

  /** Lets the next thing happen that needs no request. */
  async step(): Promise<void> {
    await this.#time.runUntil(this.#time.nextAt)
  }

  /** A request comes to one of the nodes, as a load balancer sends it. */
  decide(record: LogRecord): Asked {
    const { length } = this.#guards
    return this.#ask(this.#guards[length === 1 ? 0 : this.#random.below(length)] as Guard<LogRecord, never[]>, record)
  }

  /** The same request where each node knew at once what all others allow. */
  decideExactly(record: LogRecord): Asked {
    return this.#ask(this.#exact as Guard<LogRecord, never[]>, record)
  }

  /** Plans something so many milliseconds from now. */
  after(milliseconds: number, run: () => void): void {
    this.#time.at(this.#time.now + milliseconds, run)
  }

  #ask(guard: Guard<LogRecord, never[]>, record: LogRecord): Asked {
    return { decision: guard.check(record), release: (decided) => guard.throttler.release(decided) }
  }

  /** Waits for promises that were made meanwhile; undefined if there were none. */
  settled(waiting: boolean): Promise<void> | undefined {
    return this.#time.takeTouched() || waiting ? this.#time.settled() : undefined
  }

  /** Resources used since the boot. */
  get usage(): ClusterUsage {
    const nodes = this.#guards.map(({ throttler }) => snapshot(throttler, { top: 1, blocked: 1 }).policies)
    return {
      store: this.#store.statistics,
      keys: this.policies.map((_, place) => ({
        held: Math.max(...nodes.map((policies) => policies[place]?.keys ?? 0)),
        overflowing: nodes.some((policies) => policies[place]?.overflowing === true),
      })),
      warnings: [...this.#warnings],
    }
  }

  /** Ends at once: nothing of it goes on. */
  stop(): void {
    for (const clock of this.#clocks) clock.stop()
  }
}

/** The policies that an override is of: those of all plans, where it names the whole. */
function namesOf(policy: string, policies: readonly LogPolicy[]): readonly string[] {
  const whole = policies.find(({ name = 'default' }) => name === policy)
  return whole !== undefined && 'plans' in whole ? Object.keys(whole.plans).map((plan) => `${policy}:${plan}`) : [policy]
}

/** Whether it limits requests in flight. */
export function hasSlots({ algorithm }: LogPolicy): boolean {
  return algorithm?.slots !== undefined
}

/** A policy as one process alone decides by it. */
export function locally(policy: LogPolicy): LogPolicy {
  const { storeTimeout: _, ...rest } = policy as Extract<LogPolicy, { readonly storeTimeout?: unknown }>
  return { ...rest, coordination: 'local' } as LogPolicy
}

/** A policy under another coordination. */
export function coordinated(policy: LogPolicy, coordination: Coordination): LogPolicy {
  // Slots are kept in one process, or taken ahead; of other ways they know nothing.
  if (hasSlots(policy) && coordination !== 'local' && coordination !== 'leased') return policy
  const { storeTimeout, ...rest } = policy as Extract<LogPolicy, { readonly storeTimeout?: unknown }>
  const waits = coordination === 'central' || coordination === 'leased'
  return { ...rest, coordination, ...(waits && storeTimeout !== undefined && { storeTimeout }) } as LogPolicy
}
