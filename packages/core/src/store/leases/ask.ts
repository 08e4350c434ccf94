import type { Ordinal } from '../../time/intervals.ts'

/**
 * The ordinal of units without an interval, which come back when requests end. It is the largest safe integer, which no interval reaches.
 * The store frees these units if the process sends no request for them within `lifetime`.
 */
export const HELD: Ordinal = Number.MAX_SAFE_INTEGER as Ordinal

/**
 * Units of open reservations that count differently if their process is dead at the time `due`, by the store's clock in milliseconds since
 * the Unix epoch. `back` of the units return. If it is negative, more units than were reserved have been used.
 */
export interface LeaseReturn {
  readonly due: number
  readonly back: number
}

/** The most of them in a request. Units of further reservations stay counted. */
export const MOST_RETURNS = 64

/**
 * A process's counts of one key in one interval, and its request for quota. All counts are absolute and only grow, so a request that
 * arrives late, twice or out of order does no harm. Numbers are units, except for `seq`, `nodes` and `epoch`.
 */
export interface LeaseAsk {
  /** The interval, or `HELD`. */
  readonly ordinal: Ordinal
  /** Grows whenever the process forgets counts of a key. The store treats its earlier grants as another process's. */
  readonly incarnation: number
  /** Grows with each request of an incarnation. A request that arrives after a later one gets no new units. */
  readonly seq: number
  /** Units granted to the process, as far as it knows. */
  readonly granted: number
  /** Part of `granted`: units that the process has returned and will not use. */
  readonly returned: number
  /** Units allowed, and units of these that were refunded. */
  readonly taken: number
  readonly given: number
  /** Units in use when the process received the key's last reset, and the epoch of that reset. Both are 0 without one. */
  readonly cleared: number
  readonly epoch: number
  /** The `granted` that the first waiting request needs, and the `granted` that all of them need. Both equal `granted` if none waits. */
  readonly least: number
  readonly waiting: number
  /** The `granted` that the process requests, so that later requests need not wait. At least `waiting`. */
  readonly upTo: number
  /** The key's limit in this process. */
  readonly limit: number
  /** The number of live processes that this one last received. */
  readonly nodes: number
  /** The store grants an interval's units from this many milliseconds before its begin: the length of a span. */
  readonly early: number
  /**
   * Milliseconds for which a silent process counts as live. For this time the store grants nothing after it lost data, and keeps `HELD`
   * units for their process.
   */
  readonly lifetime: number
  /** Open reservations whose units change if the process dies. At most `MOST_RETURNS`. Absent: none. */
  readonly open?: readonly LeaseReturn[]
}

/** The store's answer to a request. Numbers are units, except for the times and `epoch`. */
export interface LeaseReply {
  /** Units granted to the process since the interval began. */
  readonly granted: number
  /** Units that no process has leased or used. */
  readonly free: number
  /** Units used, as far as processes have reported them. */
  readonly used: number
  /** Few units are left. The store grants only the units that waiting requests need, and processes lease none ahead. */
  readonly tail: boolean
  /** Milliseconds for which the store grants nothing, because it has lost data. Otherwise 0. */
  readonly quiet: number
  /** The key's last reset, or 0. */
  readonly epoch: number
  /** The store's clock, milliseconds since the Unix epoch. */
  readonly now: number
}

/** News of a key's units in one interval, for processes that did not request it. */
export interface LeaseNotice {
  readonly type: 'lease'
  readonly policyId: string
  readonly key: string
  readonly ordinal: Ordinal
  /** As in `LeaseReply`. */
  readonly free: number
  readonly tail: boolean
  /** The store has lost the processes' leases. They send them again. */
  readonly lost: boolean
}
