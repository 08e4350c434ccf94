import type { Answering } from '../report/when-ended.ts'
import type { Meter } from './meter.ts'
import type { SharedShape } from './shape.ts'
import type { MeterExchange, SharedSite } from './site.ts'
import type { Step } from './step.ts'

/**
 * Where a policy's counts are kept and who decides.
 * - `'local'`: in this process alone.
 * - `'background'`: at each node, exchanged as needed. A request is rejected when the limit is known to be exceeded.
 * - `'periodic'`: at each node, exchanged at the ends of spans only, as the basic algorithm was published.
 * - `'leased'`: each node takes a part of a key's quota ahead; requests that find none wait for the store. Never more than the limit
 *   while the store answers and keeps its data, and with `failMode: 'closed'` also without the store.
 * - `'central'`: at the store, which is asked about each request.
 */
export type Coordination = 'local' | 'background' | 'periodic' | 'leased' | 'central'

/** What is special about units that a request holds until it ends, in place of an interval. It brings all that only they need. */
export interface Slots {
  /** Milliseconds after which one that was not released is freed. */
  readonly maxDuration: number
  /** Until when a request keeps it: its handler has ended and its response too, or its response alone. */
  readonly releaseOn: 'handler' | 'response'
  /** What `RateLimit-Policy` calls them. */
  readonly unit: string
  /** What a client is told that finds none. */
  readonly busy: string
  /** Options of a policy that make no sense with it. */
  readonly without: readonly string[]
  /** Why a policy's slot was freed, and what to do. */
  expired(policy: string): string
  /** Calls a function once, as soon as an answer has been sent or nobody is left to get it. */
  whenEnded(answering: Answering, then: () => void): void
}

/** What all algorithms have. */
export interface AnyAlgorithm {
  /** As users write it, for messages. */
  readonly name: string
  /** Part of a policy's id in the store: counts that were kept under another id are of no use. */
  readonly id: string
  /** Parts that the counts of an interval are kept in; a policy's interval must have room for them. Default 1. */
  readonly subWindows?: number
  /** Whether its intervals may be those of a calendar. */
  readonly calendar?: true
  /** Numbers that a local meter keeps for each key, at least 1. Default 5. */
  readonly fields?: number
  readonly local?: (site: SharedSite, exchange: MeterExchange) => Meter
  /** What processes that count together keep of a key; absent where they can't. */
  readonly shape?: SharedShape
  /**
   * Units that a key has which was not used for long, and so the most that a request may take.
   *
   * @param limit of the policy, or of the key. Default: the limit
   */
  readonly most?: (limit: number) => number
  /**
   * Its options by name, as they are for a limit, where another value still counts the same: nodes report to each other how these differ.
   * Those that are left out of the options may be left out here.
   */
  readonly settings?: (limit: number) => Readonly<Record<string, number>>
  /** What clients are told as `weir-burst`: units that may come at once beside the limit's pace. */
  readonly burst?: (limit: number) => number
  /**
   * How long an allowed request is to wait, in milliseconds, by algorithms that shape traffic.
   *
   * @param remaining units left after it
   */
  readonly delay?: (remaining: number, limit: number, interval: number) => number
  /**
   * What shapes traffic in the background, where all nodes keep the pace together: it counts what need not wait, and holds the rest
   * (`holds`). Default: the algorithm itself.
   */
  readonly together?: AnyAlgorithm
  /** How long a request for which there is no room is held at most until there is, in milliseconds. Default: not at all. */
  readonly holds?: (limit: number, interval: number) => number
  /** What a store does for each request of `'central'` policies, and the model of its scripts. They need `local` too. */
  readonly step?: Step
  readonly slots?: Slots | undefined
}

/**
 * A way to limit, chosen by importing it: a frozen value without state. It makes a meter for each policy, by the policy's
 * coordination; one that it can't make is absent, and a policy that asks for it is rejected.
 */
export interface Algorithm extends AnyAlgorithm {
  readonly slots?: undefined
}

/** A way to limit how many requests are in flight, so that there is no interval: `concurrency()`. */
export interface SlotAlgorithm extends AnyAlgorithm {
  readonly slots: Slots
}
