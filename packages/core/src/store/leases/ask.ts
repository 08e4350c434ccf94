import type { Ordinal } from '../../time/intervals.ts'

/**
 * The ordinal of what has no interval: units that come back when requests end. The last number there is, which no interval gets to.
 * The store waits `lifetime` for the node's next word of them; then they are free.
 */
export const HELD: Ordinal = Number.MAX_SAFE_INTEGER as Ordinal

/**
 * A process's counts of one key in one interval, and its request for quota. All counts are absolute and only grow, so that an ask that
 * comes late, twice or out of order does no harm. Numbers are units, except for `seq`, `nodes` and `epoch`.
 */
export interface LeaseAsk {
  /** The interval, or `HELD`. */
  readonly ordinal: Ordinal
  /** Grows whenever the node forgets counts of a key: what it was granted before is another node's to the store. */
  readonly incarnation: number
  /** Grows with each ask of an incarnation. One that was overtaken by a later one is granted nothing new. */
  readonly seq: number
  /** Units granted to the process, as far as it knows. */
  readonly granted: number
  /** Part of `granted`: units that the process has returned and will not use. */
  readonly returned: number
  /** Units allowed, and units of these that were refunded. */
  readonly taken: number
  readonly given: number
  /** Its use when it heard of the key's last reset, and that reset; 0 for none. */
  readonly cleared: number
  readonly epoch: number
  /** The `granted` that the first waiting request needs, and that all of them need; equal to `granted` if none waits. */
  readonly least: number
  readonly waiting: number
  /** The `granted` that the process wants, so that later requests need not wait; at least `waiting`. */
  readonly upTo: number
  /** The key's limit as this node has it. */
  readonly limit: number
  /** Live nodes as far as this one knows. */
  readonly nodes: number
  /** Milliseconds before an interval's begin from when on its units are granted: the length of a span. */
  readonly early: number
  /** How long nodes count as live that are not heard of, in milliseconds: so long nothing is granted after a loss, and `HELD` units are kept for their node. */
  readonly lifetime: number
}

/** The store's answer to an ask. Numbers are units, except for the times and `epoch`. */
export interface LeaseReply {
  /** Units granted to the process since the interval began. */
  readonly granted: number
  /** Units that no node holds or has used. */
  readonly free: number
  /** Units used, as far as nodes have told. */
  readonly used: number
  /** Little is left: the store grants what waiting requests need, and nodes keep nothing beyond that. */
  readonly tail: boolean
  /** Milliseconds for which nothing is granted, as the store has lost what it knew; else 0. */
  readonly quiet: number
  /** The key's last reset; 0 for none. */
  readonly epoch: number
  /** The store's clock, milliseconds since the Unix epoch. */
  readonly now: number
}

/** News of a key's units in one interval, for nodes that did not ask. */
export interface LeaseNotice {
  readonly type: 'lease'
  readonly policyId: string
  readonly key: string
  readonly ordinal: Ordinal
  /** As in `LeaseReply`. */
  readonly free: number
  readonly tail: boolean
  /** The store has lost what nodes hold: they tell it again. */
  readonly lost: boolean
}
