import { createThrottler, memoryStore, type Policy, type SlidingWindow } from '@weir/core'
import type { Ordinal, SyncReply, SyncRequest } from '@weir/core/sync'
import { uniform } from '../load/balancing.ts'
import { Digest } from '../measure/digest.ts'
import { type Figures, figuresOf } from '../measure/figures.ts'
import { type IntervalMeasure, Ledger, type Offer } from '../measure/ledger.ts'
import { FixedReference, LeakyReference, type Reference, SlidingReference } from '../measure/reference.ts'
import { BucketRoom, type BucketShape, FixedRoom, LeakyRoom, type Room } from '../measure/room.ts'
import { type Summary, summarize } from '../measure/summary.ts'
import { SeededRandom } from '../random/random.ts'
import { SimulatedStore, type StoreStatistics } from '../stores/simulated-store.ts'
import { manualClock } from '../time/manual-clock.ts'
import { VirtualTime } from '../time/virtual-time.ts'
import { Cluster } from './cluster.ts'
import type { ClusterNode } from './cluster-node.ts'
import { loaded } from './loaded.ts'
import { mayWait, type NodeDecision, type Scenario } from './scenario.ts'
import { BlockWatch, UnblockWatch } from './watches.ts'

/** The result of a simulation, compared with an exact limiter that got the same requests. */
export interface SimulationResult extends Figures {
  readonly seed: number
  readonly policy: Policy
  /** A fingerprint of all decisions. The same scenario and seed give the same fingerprint. */
  readonly digest: string
  /** The measured intervals of all watched keys. */
  readonly measured: readonly IntervalMeasure[]
  /** Milliseconds from the first to the last process that opens a key again after a cooldown, for each block. */
  readonly unblockSpread: Summary
  /** Traffic through the store, warm-up included. */
  readonly store: Readonly<StoreStatistics>
  /** Requests of all keys, watched or not, warm-up included. */
  readonly allRequests: number
}

/** The most keys for which times to block are measured, because each one calls every process at every event. */
const MOST_TIMED = 8

/**
 * Runs a cluster of real throttlers in virtual time and measures it against exact limiters.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for an invalid policy, or the error that a process throws
 *
 * @example
 * const { overshoot } = await simulate({ policy: { limit: 300, interval: '1m' }, nodes: 8, intervals: 60, load: poisson(2) })
 * overshoot.p95 // units beyond the limit, as a part of it, in 95 of 100 intervals at most
 */
export async function simulate(scenario: Scenario): Promise<SimulationResult> {
  return new Simulation(scenario).run()
}

class Simulation {
  readonly #scenario: Scenario
  readonly #policy: Policy
  readonly #random: SeededRandom
  readonly #time: VirtualTime
  readonly #store: SimulatedStore
  readonly #cluster: Cluster
  readonly #digest = new Digest()
  readonly #ledgers = new Map<string, Ledger>()
  readonly #watch: ReadonlySet<string> | undefined
  readonly #blockWatches = new Map<Ledger, BlockWatch>()
  readonly #unblock: UnblockWatch
  readonly #waits: boolean
  readonly #timeBlocks: boolean
  #requests = 0

  constructor(scenario: Scenario) {
    this.#scenario = scenario
    this.#policy = policyOf(scenario)
    const { interval } = this.#policy
    this.#random = new SeededRandom(scenario.seed ?? 1)
    // The wall clock's zero is moved so that an interval since the Unix epoch begins at moment 0.
    this.#time = new VirtualTime(-(scenario.boot ?? 2000), Math.ceil(1_000_800_000 / interval) * interval)
    this.#store = new SimulatedStore({
      time: this.#time,
      random: this.#random.stream('network'),
      ...(scenario.network && { network: scenario.network }),
      ...(scenario.storeTimeout !== undefined && { storeTimeout: scenario.storeTimeout }),
      ...(scenario.storeClock && { clock: scenario.storeClock }),
    })
    this.#cluster = new Cluster({
      scenario,
      time: this.#time,
      random: this.#random,
      store: this.#store,
      interval,
      changed: () => {
        for (const watch of this.#blockWatches.values()) watch.drop()
      },
    })
    this.#unblock = new UnblockWatch(this.#time, () => this.#cluster.nodes)
    this.#watch = scenario.watch && new Set(scenario.watch)
    this.#waits = scenario.waits ?? mayWait(this.#policy)
    this.#timeBlocks = scenario.timeBlocks ?? false
    const { handled } = scenario
    const compared = isLeaky(this.#policy)
    if (compared || handled !== undefined) {
      this.#store.handled = (request, reply, nodeId) => {
        handled?.(nodeId, request, reply, this.#store.serverClock.now())
        if (compared) this.#compare(request, reply)
      }
    }
    this.#store.observer = (_node, { entries, blocks }) => {
      const now = this.#store.serverClock.now()
      for (const { key } of entries) this.#count(key, now)
      for (const { key } of blocks) this.#count(key, now)
    }
  }

  async run(): Promise<SimulationResult> {
    const { intervals, warmup = 2, nodes = 3, boot = 2000, faults } = this.#scenario
    const count = warmup + intervals
    await loaded(this.#scenario.policy)
    this.#cluster.boot(nodes, boot / 2)
    const list = faults?.plan({ random: this.#random.stream('faults'), intervals: count, nodes }) ?? []
    this.#cluster.plan(list)
    await this.#loop(count * this.#policy.interval)
    this.#cluster.stop()
    const measured = this.#measured(warmup, count)
    for (const interval of measured) {
      interval.outage = list.some((fault) => fault.kind === 'outage' && fault.from < interval.index + 1 && fault.until > interval.index)
    }
    return {
      seed: this.#scenario.seed ?? 1,
      policy: this.#policy,
      digest: this.#digest.toString(),
      measured,
      unblockSpread: summarize(this.#unblock.spreads),
      store: this.#store.statistics,
      allRequests: this.#requests,
      ...figuresOf(measured, this.#policy.limit),
    }
  }

  /** Sends requests until `end`, and none for a further interval, so that all messages arrive. */
  async #loop(end: number): Promise<void> {
    const { interval, limit } = this.#policy
    const { load, balancing = uniform, key = 'key' } = this.#scenario
    const time = this.#time
    const pick = balancing.start({ random: this.#random.stream('balancing'), interval })
    await time.runUntil(0)
    await this.#store.opened()
    const arrivals = load.start({ random: this.#random.stream('load'), limit, interval, key })
    this.#askStore(0)
    const rest = end + interval
    for (;;) {
      const due = time.nextAt
      if (arrivals.time < due && arrivals.time < end) {
        time.pass(arrivals.time)
        const { nodes } = this.#cluster
        this.#request(arrivals.key, arrivals.cost, pick(nodes.length, arrivals.time, arrivals.key))
        arrivals.advance()
        if (!time.takeTouched()) continue
        await time.drained()
      } else {
        if (due > rest) return
        if (time.step()) await time.drained()
      }
      if (this.#blockWatches.size > 0) for (const watch of this.#blockWatches.values()) watch.look()
    }
  }

  #request(key: string, cost: number, place: number): void {
    const { now } = this.#time
    const node = this.#cluster.nodes[place] as ClusterNode
    if (now < node.clock.stalledUntil) {
      this.#time.at(node.clock.stalledUntil, () => this.#request(key, cost, place))
      return
    }
    this.#requests++
    const ledger = this.#ledgerOf(key)
    const offer = ledger?.offer(this.#store.serverClock.now(), cost, node.place)
    // This runs for every request of a flood. So it makes no closures, except for policies whose requests wait.
    if (node.rejects(key, cost, now)) this.#settle(node, key, cost, now, ledger, offer, undefined)
    else if (this.#waits && node.limiter.checkAsync !== undefined) {
      node.limiter.checkAsync(key, cost).then((decision) => this.#settle(node, key, cost, now, ledger, offer, decision))
      this.#time.touch()
    } else this.#settle(node, key, cost, now, ledger, offer, node.limiter.check(key, cost))
  }

  /** Records a decision. `undefined` is a rejection that needed no check. */
  #settle(
    node: ClusterNode,
    key: string,
    cost: number,
    arrived: number,
    ledger: Ledger | undefined,
    offer: Offer | undefined,
    decision: NodeDecision | undefined,
  ): void {
    const allowed = decision?.allowed === true
    this.#digest.add(arrived, node.place, allowed)
    if (decision !== undefined) node.answered(key, cost, this.#time.now, decision)
    if (ledger === undefined || offer === undefined) return
    ledger.decided(offer, allowed, this.#waits ? this.#store.serverClock.now() : undefined)
    this.#observe(ledger, node, decision)
  }

  /** Passes a decision to the watches. */
  #observe(ledger: Ledger, node: ClusterNode, decision: NodeDecision | undefined): void {
    const watch = this.#blockWatches.get(ledger)
    if (ledger.exceededAt !== undefined && watch !== undefined) {
      watch.begin(ledger, this.#cluster.nodes, this.#time.now + ledger.end - this.#store.serverClock.now())
      if (decision?.allowed === true) watch.allowed(node)
    }
    if (this.#timeBlocks && this.#policy.cooldown > 0 && decision?.allowed === false)
      this.#unblock.rejected(ledger.key, decision.retryAfterMs)
  }

  #ledgerOf(key: string): Ledger | undefined {
    let ledger = this.#ledgers.get(key)
    if (ledger !== undefined || (this.#watch !== undefined && !this.#watch.has(key))) return ledger
    const { limit, interval } = this.#policy
    const sliding = isSliding(this.#policy)
    ledger = new Ledger(key, {
      limit,
      interval,
      most: mostOf(this.#policy),
      ...yardsticksOf(this.#policy, () => this.#cluster.nodes.length),
      logDemand: sliding,
      first: Math.round(this.#time.epoch / interval),
    })
    this.#ledgers.set(key, ledger)
    if (this.#timeBlocks && isFixed(this.#policy) && this.#blockWatches.size < MOST_TIMED)
      this.#blockWatches.set(ledger, new BlockWatch(this.#time))
    return ledger
  }

  /** Compares the levels of buckets in the store's reply with the units that were really allowed. */
  #compare({ entries }: SyncRequest, { results }: SyncReply): void {
    const now = this.#store.serverClock.now()
    entries.forEach(({ policy, key }, place) => {
      const ledger = this.#ledgers.get(key)
      const cell = results[place]?.cells[0]
      if (ledger === undefined || cell?.level === undefined) return
      const level = cell.level - (policy.drain ?? 0) * (now / policy.width - cell.ordinal)
      ledger.told(now, Math.max(0, level))
    })
  }

  #count(key: string, now: number): void {
    const ledger = this.#ledgers.get(key)
    if (ledger !== undefined) ledger.at(now).operations++
  }

  /** Reads the totals of an interval from the store when the next interval is nearly over. Fixed windows only. */
  #askStore(index: number): void {
    const { interval, id } = this.#policy
    if (!isFixed(this.#policy)) return
    this.#time.at(
      (index + 1.9) * interval,
      () => {
        const ordinal = (Math.round(this.#time.epoch / interval) + index) as Ordinal
        for (const ledger of this.#ledgers.values()) {
          const stored = this.#store.total(id, ledger.key, ordinal)
          if (stored !== undefined) ledger.byIndex(index).stored = stored
        }
        this.#askStore(index + 1)
      },
      false,
    )
  }

  #measured(warmup: number, count: number): IntervalMeasure[] {
    const wanted = this.#scenario.measured ?? (() => true)
    const list: IntervalMeasure[] = []
    for (const ledger of this.#ledgers.values()) {
      for (let index = warmup; index < count; index++) if (wanted(index)) list.push(ledger.byIndex(index))
    }
    return list
  }
}

function isSliding({ algorithm }: Policy): boolean {
  return (algorithm.subWindows ?? 1) > 1
}

function isLeaky({ algorithm }: Policy): boolean {
  return algorithm.step?.id === 'bucket'
}

function isFixed(policy: Policy): boolean {
  return !isSliding(policy) && !isLeaky(policy)
}

function mostOf({ algorithm, limit }: Policy): number {
  return algorithm.most?.(limit) ?? limit
}

/** The models with which decisions of a policy are compared. */
function yardsticksOf(policy: Policy, nodes: () => number): { readonly reference: Reference; readonly room: Room } {
  const { limit, interval, cooldown } = policy
  if (isLeaky(policy)) {
    const most = mostOf(policy)
    return { reference: new LeakyReference(limit, interval, most, cooldown), room: new LeakyRoom(limit, interval, most) }
  }
  if (!isSliding(policy)) return { reference: new FixedReference(limit, interval, cooldown), room: new FixedRoom(limit, interval) }
  return {
    reference: new SlidingReference(limit, interval, cooldown),
    room: new BucketRoom(limit, interval, bucketsOf(policy), nodes),
  }
}

/** The spans of a sliding window, from the policy. */
function bucketsOf({ algorithm }: Policy): BucketShape {
  return algorithm as SlidingWindow
}

/** The checked and complete policy, made by the code that ships. */
function policyOf(scenario: Scenario): Policy {
  const throttler = createThrottler({ policies: [scenario.policy], clock: manualClock(), store: memoryStore() })
  return throttler.policies[0] as Policy
}
