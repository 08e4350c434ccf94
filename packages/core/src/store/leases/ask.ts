import type { Ordinal } from '../../time/intervals.ts'

/**
 * The ordinal of what has no interval: units that come back when requests end. The last number there is, which no interval gets to.
 * The store waits `lifetime` for the node's next word of them; then they are free.
 */
export const HELD: Ordinal = Number.MAX_SAFE_INTEGER as Ordinal

/**
 * What a node says of one key in one interval, and what it wants. All counts are absolute and only grow, so that an ask that comes
 * late, twice or out of order says nothing wrong. Units, but for `seq`, `nodes` and `epoch`.
 */
export interface LeaseAsk {
  /** The interval, or `HELD`. */
  readonly ordinal: Ordinal
  /** Grows whenever the node forgets counts of a key: what it was granted before is another node's to the store. */
  readonly incarnation: number
  /** Grows with each ask of an incarnation. One that was overtaken by a later one is granted nothing new. */
  readonly seq: number
  /** What the node knows that it was granted. */
  readonly granted: number
  /** Of these, what it has given back and will not use. */
  readonly returned: number
  /** Units allowed, and units of these that were refunded. */
  readonly taken: number
  readonly given: number
  /** Its use when it heard of the key's last reset, and that reset; 0 for none. */
  readonly cleared: number
  readonly epoch: number
  /** What `granted` has to become for the first of the requests that wait, and for all of them; `granted` when none waits. */
  readonly least: number
  readonly waiting: number
  /** What `granted` is to become, so that later requests need not wait; at least `waiting`. */
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

/** What the store answers. Units, but for the times and `epoch`. */
export interface LeaseReply {
  /** What the node was granted of the interval since its begin. */
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
