import type { Clock, PolicyOptions, Store, ThrottlerOptions } from '@weir/core'
import type { SyncReply, SyncRequest } from '@weir/core/sync'
import type { Balancing } from '../load/balancing.ts'
import type { Load } from '../load/load.ts'
import type { FaultPlan } from '../network/fault.ts'
import type { NetworkOptions } from '../network/network.ts'
import type { SeededRandom } from '../random/random.ts'
import type { NodeClockOptions } from '../time/manual-clock.ts'
import type { VirtualTime } from '../time/virtual-time.ts'

/** The fields of a decision that the simulator reads. A throttler's decision has them. */
export interface NodeDecision {
  readonly allowed: boolean
  readonly reason: string
  /** Milliseconds after which a rejected request would be let in if no other came before it. */
  readonly retryAfterMs: number
}

/** The methods of a node that the simulator uses. Throttlers have them, and so may any other limiter for a comparison. */
export interface SimulatedNode {
  readonly nodeId: string
  check(key: string, cost?: number): NodeDecision
  /** Used instead of `check` where requests may wait. */
  checkAsync?(key: string, cost?: number): Promise<NodeDecision>
  /** As `check`, but nothing is counted; without it times to block and unblock are not measured. */
  peek?(key: string, cost?: number): NodeDecision
  start?(): unknown
  close(): Promise<void>
}

/** The surroundings of a node. */
export interface NodeContext {
  readonly policy: PolicyOptions
  readonly store: Store
  readonly clock: Clock
  readonly random: () => number
  /** The node's place in the cluster; a restarted node has the place of its predecessor. */
  readonly place: number
  /** The time of the whole simulation: moment 0 is the begin of the first interval. To look at it changes nothing. */
  readonly time: VirtualTime
}

/** A cluster under load, in virtual time. Positions are in intervals since the begin of the first one, warm-up included. */
export interface Scenario {
  readonly policy: PolicyOptions
  /** Nodes at the start. Default 3. */
  readonly nodes?: number
  /** Intervals that are measured. */
  readonly intervals: number
  /** Intervals before them that are not. Default 2. */
  readonly warmup?: number
  /** Where requests come from. */
  readonly load: Load
  /** Default `uniform`. */
  readonly balancing?: Balancing
  /** Everything random follows from it. Default 1. */
  readonly seed?: number
  /** The key of loads that don't choose one. Default `'key'`. */
  readonly key?: string
  /** Which keys are measured. Default all; name a few when there are a great many. */
  readonly watch?: readonly string[]
  /** Which intervals are measured, by position; default all after warm-up. */
  readonly measured?: (index: number) => boolean
  readonly network?: NetworkOptions
  /** Milliseconds after which nodes give up an exchange. Default 1000. */
  readonly storeTimeout?: number
  /** Whose time the store's replies carry; see `SimulatedStoreOptions`. Default `'store'`. */
  readonly storeClock?: 'store' | 'caller'
  /** Each node's clock. Default: a right one that shows whole milliseconds. */
  readonly clocks?: (place: number, random: SeededRandom) => NodeClockOptions
  readonly faults?: FaultPlan
  /**
   * Measure how long nodes take to close a key, and how far apart they open it again. It takes a `peek` at every node
   * to which something has happened, which may make a node think earlier of an exchange. Default false.
   */
  readonly timeBlocks?: boolean
  /** Ask with `checkAsync`. Default: where the policy's requests may wait. */
  readonly waits?: boolean
  /** Further options of the throttlers. */
  readonly throttler?: Omit<ThrottlerOptions, 'policies' | 'store' | 'clock' | 'random'>
  /** Makes the nodes. Default: throttlers of `@weir/core`. */
  readonly node?: (context: NodeContext) => SimulatedNode
  /** Milliseconds before the first interval in which the nodes start, at random moments of the first half. Default 2000. */
  readonly boot?: number
  /**
   * Don't ask a node again and again for a key that it has rejected, as long as nothing but time has happened to it and
   * less than half of the time has passed that it told to wait, unless the store is away. Every 64th such request is asked nevertheless, and the
   * run fails if it is allowed. Changes no figure, and makes floods affordable. Default true, but false where requests may wait: units come back, and the store may be asked.
   */
  readonly shortcut?: boolean
  /**
   * Sees each exchange that the store has handled, at that moment.
   *
   * @param time - of the store's clock, milliseconds since the Unix epoch
   */
  readonly handled?: (nodeId: string, request: SyncRequest, reply: SyncReply, time: number) => void
}

/** Whether requests of a policy may wait for the store. */
export function mayWait({ coordination }: Pick<PolicyOptions, 'coordination'>): boolean {
  return coordination === 'leased' || coordination === 'central'
}

/** A scenario in one line, for messages: with it and the seed a run can be repeated. */
export function describeScenario(scenario: Scenario): string {
  const { policy, nodes = 3, intervals, warmup = 2, load, balancing, seed = 1, faults, network } = scenario
  const parts = [
    `seed ${seed}`,
    `policy ${JSON.stringify(policy)}`,
    `nodes ${nodes}`,
    `intervals ${warmup}+${intervals}`,
    `load ${load.name}`,
    `balancing ${balancing?.name ?? 'uniform'}`,
  ]
  if (network !== undefined)
    parts.push(`network ${JSON.stringify(network, (_key, value: unknown) => (typeof value === 'function' ? 'drawn' : value))}`)
  if (faults !== undefined) parts.push(`faults ${faults.name}`)
  return parts.join(', ')
}
