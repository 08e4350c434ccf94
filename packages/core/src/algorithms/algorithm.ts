import type { Answering } from '../report/when-ended.ts'
import type { Meter } from './meter.ts'
import type { SharedShape } from './shape.ts'
import type { MeterExchange, SharedSite } from './site.ts'
import type { Step } from './step.ts'

/**
 * Which process or store counts a policy's requests and decides them.
 * - `'local'`: this process alone.
 * - `'background'`: each process. Counts are synced as needed. A request is rejected once confirmed counts reach the limit.
 * - `'periodic'`: each process. Counts are synced only at the ends of spans, as the basic algorithm was published.
 * - `'leased'`: each process takes a part of a key's quota ahead. Requests that find no units wait for the store. The limit is never
 *   exceeded while the store answers and keeps its data, and with `failMode: 'closed'` also without the store.
 * - `'central'`: the store, by a round trip for each request.
 */
export type Coordination = 'local' | 'background' | 'periodic' | 'leased' | 'central'

/**
 * Differences of an algorithm whose units a request keeps until it ends, in place of an interval. Only `concurrency()` carries their code.
 */
export interface Slots {
  /** Milliseconds after which a slot that was not released is freed. */
  readonly maxDuration: number
  /** Until when a request keeps its slot: its handler and its response have both ended, or its response alone. */
  readonly releaseOn: 'handler' | 'response'
  /** The quota unit in `RateLimit-Policy`. */
  readonly unit: string
  /** The message for a client that gets no slot. */
  readonly busy: string
  /** Options of a policy that make no sense with slots. */
  readonly without: readonly string[]
  /** Explains why a policy's slot was freed, and the next step. */
  expired(policy: string): string
  /** Calls a function once, as soon as an answer has been sent or its client has left. */
  whenEnded(answering: Answering, then: () => void): void
}

/** The members of all algorithms. */
export interface AnyAlgorithm {
  /** The name as users write it, for messages. */
  readonly name: string
  /** Part of a policy's id in the store: counts under another id are of no use. */
  readonly id: string
  /** Parts of an interval that are counted separately. A policy's interval must be long enough for them. Default 1. */
  readonly subWindows?: number
  /** Whether intervals may be those of a calendar. */
  readonly calendar?: true
  /** Numbers that a local meter keeps for each key, at least 1. Default 5. */
  readonly fields?: number
  readonly local?: (site: SharedSite, exchange: MeterExchange) => Meter
  /** The counts that processes share for a key. Absent if the algorithm can't sync them. */
  readonly shape?: SharedShape
  /**
   * Units of a key after a long rest, and so the most that a request may cost.
   *
   * @param limit of the policy, or of the key. Default: the limit
   */
  readonly most?: (limit: number) => number
  /**
   * The options by name, as they are for a limit, if another value still counts the same: processes report how theirs differ. Options that
   * the user left out may be absent.
   */
  readonly settings?: (limit: number) => Readonly<Record<string, number>>
  /** The value of `weir-burst` in responses: units that are allowed immediately beside the limit's pace. */
  readonly burst?: (limit: number) => number
  /**
   * How long an allowed request must wait, in milliseconds, if the algorithm shapes traffic.
   *
   * @param remaining units left after it
   */
  readonly delay?: (remaining: number, limit: number, interval: number) => number
  /**
   * The algorithm that shapes traffic with coordination `'background'`, in which all processes keep the pace together: it counts requests
   * that need no wait and delays the others (`holds`). Default: the algorithm itself.
   */
  readonly together?: AnyAlgorithm
  /** How long a request without capacity is delayed at most, in milliseconds. Default: it isn't delayed. */
  readonly holds?: (limit: number, interval: number) => number
  /** The store's decision for each request of `'central'` policies, and the model of its scripts. It needs `local` too. */
  readonly step?: Step
  readonly slots?: Slots | undefined
}

/**
 * A way to limit, chosen by its import: a frozen value without state. It makes a meter for each policy, by the policy's coordination. A
 * coordination that it doesn't support is absent, and a policy with it is rejected.
 */
export interface Algorithm extends AnyAlgorithm {
  readonly slots?: undefined
}

/** A way to limit how many requests are in flight, so that there is no interval: `concurrency()`. */
export interface SlotAlgorithm extends AnyAlgorithm {
  readonly slots: Slots
}
