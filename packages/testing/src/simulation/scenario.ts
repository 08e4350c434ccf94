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
  /** Milliseconds after which a rejected request would be allowed if no other came before it. */
  readonly retryAfterMs: number
}

/** The methods of a process that the simulator uses. Throttlers have them. Another limiter with them can be compared. */
export interface SimulatedNode {
  readonly nodeId: string
  check(key: string, cost?: number): NodeDecision
  /** Used instead of `check` if requests may wait. */
  checkAsync?(key: string, cost?: number): Promise<NodeDecision>
  /** Decides like `check`, but counts nothing. Without it, times to block and unblock are not measured. */
  peek?(key: string, cost?: number): NodeDecision
  start?(): unknown
  close(): Promise<void>
}

/** The surroundings of a process. */
export interface NodeContext {
  readonly policy: PolicyOptions
  readonly store: Store
  readonly clock: Clock
  readonly random: () => number
  /** The place of the process in the cluster. A restarted process gets the same place. */
  readonly place: number
  /** The time of the whole simulation. Moment 0 is the start of the first interval. Reading it changes nothing. */
  readonly time: VirtualTime
}

/** A cluster under load, in virtual time. Positions are in intervals since the start of the first one, warm-up included. */
export interface Scenario {
  readonly policy: PolicyOptions
  /** Sets the number of processes at the start. Default 3. */
  readonly nodes?: number
  /** Sets the number of measured intervals. */
  readonly intervals: number
  /** Sets the number of intervals before them that are not measured. Default 2. */
  readonly warmup?: number
  /** Makes the requests. */
  readonly load: Load
  /** Spreads the requests over the processes. Default `uniform`. */
  readonly balancing?: Balancing
  /** Fixes everything random. Default 1. */
  readonly seed?: number
  /** Sets the key of loads that don't choose one. Default `'key'`. */
  readonly key?: string
  /** Lists the measured keys. Default all. Name a few if there are very many. */
  readonly watch?: readonly string[]
  /** Chooses the measured intervals, by position. Default all after warm-up. */
  readonly measured?: (index: number) => boolean
  readonly network?: NetworkOptions
  /** Sets how long processes wait for a sync, in milliseconds. Default 1000. */
  readonly storeTimeout?: number
  /** Chooses the clock whose time the store's replies contain, see `SimulatedStoreOptions`. Default `'store'`. */
  readonly storeClock?: 'store' | 'caller'
  /** Sets the clock of each process. Default: a correct clock in whole milliseconds. */
  readonly clocks?: (place: number, random: SeededRandom) => NodeClockOptions
  readonly faults?: FaultPlan
  /**
   * Measures how long processes take to close a key, and how far apart they open it again. This calls `peek` of every process after
   * each event, which may start a sync earlier. Default false.
   */
  readonly timeBlocks?: boolean
  /** Uses `checkAsync`. Default: true if the policy's requests may wait. */
  readonly waits?: boolean
  /** Sets further options of the throttlers. */
  readonly throttler?: Omit<ThrottlerOptions, 'policies' | 'store' | 'clock' | 'random'>
  /** Makes the processes. Default: throttlers of `@weir/core`. */
  readonly node?: (context: NodeContext) => SimulatedNode
  /** Starts the processes this many milliseconds before the first interval, at random moments of the first half. Default 2000. */
  readonly boot?: number
  /**
   * Skips checks of a key that a process has just rejected. This applies only until an event reaches the process or half of
   * `retryAfterMs` has passed, and not while the store is down. Every 64th such request is checked nevertheless, and the run fails
   * if it is allowed. It changes no figure, and makes floods affordable. Default true, but false if requests may wait: units may be
   * refunded, and the store may decide.
   */
  readonly shortcut?: boolean
  /**
   * Receives each sync that the store has handled, at that moment.
   *
   * @param time - the store's time, in milliseconds since the Unix epoch
   */
  readonly handled?: (nodeId: string, request: SyncRequest, reply: SyncReply, time: number) => void
}

/** Whether requests of a policy may wait for the store. */
export function mayWait({ coordination }: Pick<PolicyOptions, 'coordination'>): boolean {
  return coordination === 'leased' || coordination === 'central'
}

/** Describes a scenario in one line, for messages. With it and the seed a run can be repeated. */
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
