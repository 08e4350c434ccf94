import type { Meter } from './meter.ts'
import type { Exchange, SharedForm, SharedSite } from './shared/site.ts'
import type { Step } from './step.ts'

/**
 * Where a policy's counts are kept and who decides.
 * - `'local'`: in this process alone.
 * - `'background'`: at each node, exchanged as needed. A request is refused when the limit is known to be exceeded.
 * - `'spans'`: at each node, exchanged at the ends of spans only, as the basic algorithm was published.
 * - `'leases'`: each node takes a part of a key's quota ahead; requests that find none wait for the store. Never more than the limit.
 * - `'central'`: at the store, which is asked about each request.
 */
export type Coordination = 'local' | 'background' | 'spans' | 'leases' | 'central'

/**
 * A way to limit, chosen by importing it: a frozen value without state. It makes a meter for each policy, by the policy's
 * coordination; one that it can't make is absent, and a policy that asks for it is refused.
 */
export interface Algorithm {
  /** As users write it, for messages. */
  readonly name: string
  /** Part of a policy's id in the store: counts that were kept under another id are of no use. */
  readonly id: string
  /** Parts that the counts of an interval are kept in; a policy's interval must have room for them. Default 1. */
  readonly buckets?: number
  /** Numbers that a local meter keeps for each key, at least 1. Default 5. */
  readonly fields?: number
  readonly local?: (site: SharedSite, exchange: Exchange) => Meter
  readonly background?: SharedForm
  readonly spans?: SharedForm
  readonly leases?: SharedForm
  /**
   * Units that a key has which was not used for long, and so the most that a request may take.
   *
   * @param limit of the policy, or of the key. Default: the limit
   */
  readonly most?: (limit: number) => number
  /** What clients are told as `weir-burst`: units that may come at once beside the limit's pace. */
  readonly burst?: (limit: number) => number
  /**
   * How long an allowed request is to wait, in milliseconds, by algorithms that shape traffic.
   *
   * @param remaining units left after it
   */
  readonly delay?: (remaining: number, limit: number, interval: number) => number
  /** What a store does for each request of `'central'` policies, and the model of its scripts. They need `local` too. */
  readonly step?: Step
}
