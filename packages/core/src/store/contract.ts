import type { WeirError } from '../report/errors.ts'
import type { Clock } from '../time/clock.ts'
import type { CooldownGrowth } from '../time/cooldown-growth.ts'
import { type Ordinal, ordinalAt } from '../time/intervals.ts'
import type { LeaseAsk, LeaseNotice, LeaseReply } from './leases/ask.ts'
import type { AtomicStep, Verdict } from './step.ts'

export type { AtomicStep, Verdict } from './step.ts'

/**
 * Where the nodes meet. It keeps, per policy, key and cell (an interval of the epoch, or a bucket of a
 * sliding window), how many units each node has taken and refunded, and tells every node the sum.
 *
 * An implementation must be
 * - idempotent: counts are absolute per node and cell and only grow, so the same request sent twice counts once, and a
 *   late duplicate changes nothing;
 * - self-healing: after it lost data its `generation` changes, and nodes send their running counts and blocks again;
 * - self-cleaning: everything that it keeps expires, set in the same atomic step;
 * - patient: `sync` has a deadline of its own, rejects at once while disconnected, and never queues.
 *
 * `storeContract` of `@weir/testing` is the test suite of this interface.
 */
export interface MeetingPoint {
  /** A short name for messages and metrics, e.g. `'memory'`, `'ipc'`, `'redis'`. */
  readonly kind: string
  /**
   * Where it is, e.g. `'localhost:6379/0 weir'`: stores of one process with the same kind and address are one store, so
   * that their throttlers must agree on rules of the same name. Default: each value is a store of its own.
   */
  readonly address?: string
  /** Opens one node's connection. Neither throws nor waits because the store is away. */
  open(node: StoreNode): StoreConnection
  /**
   * Whether its connections decide about requests by the step of this name, for policies with `coordination: 'central'`. Default:
   * by none.
   */
  decides?(step: string): boolean
}

/** The node that opens a connection, as the store sees it. */
export interface StoreNode {
  /** Unique to this start of this node. No `:` or white space. */
  readonly id: string
  /** The node's own time and timers, for the store's deadlines. */
  readonly clock: Clock
  /** Called with what other nodes, or the store, announce. Must not throw; may be called at any time until closed. */
  announced(announcement: Announcement): void
  /**
   * Called with something that people should know of, though nothing failed: it becomes a `warning` of the throttler. The
   * store sees to it that one cause is told once. Must not throw.
   */
  warned?(error: WeirError): void
}

/** One node's connection to a store. */
export interface StoreConnection {
  /**
   * One exchange of counts.
   *
   * @throws (rejects) when nothing of it could be exchanged, or when the outcome is not known. Parts that failed alone
   * (one slot of a cluster) are `undefined` in `results`.
   */
  sync(request: SyncRequest): Promise<SyncReply>
  /** What decides about requests, where the meeting point says that it does. Asked for once, when a policy needs it. */
  decider?(): Promise<Decider>
  /** Leaves the registry of live nodes where that is possible and closes what the connection opened. Never rejects. */
  close(): Promise<void>
}

/** What a store must know of a policy to keep its counts. The same object for every entry of one policy. */
export interface StorePolicy {
  /** Tells policies apart: name, interval, algorithm, coordination and layout version; not the limit. */
  readonly id: string
  /** Width of a cell in milliseconds: the interval, or a part of a sliding window's bucket. */
  readonly width: number
  /** Cells that count together towards the limit: 1 for a fixed window, those of `buckets + 1` buckets for a sliding one. */
  readonly cells: number
  /** This node's limit in units; used for announcements only. Nodes may differ in it. */
  readonly limit: number
  /**
   * Announce a key once per cell (fixed) when its total passes this many units, and from then on also each write of a twentieth
   * of the limit (and of at least 2 units) or more; `Infinity` for never. Of a bucket: when its level passes it, and again after it
   * was below half of that.
   */
  readonly hot: number
  /** How long cells live in the store after they were last written, in milliseconds. */
  readonly ttl: number
  /**
   * Of a bucket: units that it loses in the time of a cell. Then `limit` is what it holds, and the store keeps its level: see
   * `BUCKET_PARTS`. Nodes may differ in it. Absent for windows.
   */
  readonly drain?: number
  /** Of a bucket: units beyond `limit` that its level remembers at most. Absent: all of them. */
  readonly maxDebt?: number
}

/**
 * A store keeps a bucket as one level and the units that came after it, and answers with the level that they make now. Units are
 * taken to have come when their cell began, or earlier: then a level is never above that of what was really admitted, in
 * whatever order, however late and however often the nodes send.
 *
 *     span    the cells that a full bucket takes to run out, `limit / drain` rounded up, at most `cells`
 *     group   units of cells that are all taken to have come with the first one: of those that begin within `span / FINE_PARTS` of it, and of
 *             those within `span / BUCKET_PARTS` before which the bucket had not run out since. So nothing is lost but what runs out
 *             in a 128th of the time that all of it takes. Both are at least one cell; cells from the future count as the running one
 *     level   0 at the beginning; each group that is more than `span` cells old is added to it, once it has run down by `drain` for
 *             each cell since. What is sent later for a cell that is not newer than the last such group is dropped
 *
 * Where nobody has written for half a span, or ever, the nodes may bring what is older: for a span from then on nothing is added to the
 * level. Then and always there are at most `BUCKET_GROUPS` groups: of more, the two oldest become one.
 */
export const BUCKET_PARTS = 8
export const FINE_PARTS = 128
export const BUCKET_GROUPS = 32

/** Units of one cell. Both numbers only grow while the cell lives; what counts is `taken - given`. */
export interface Cell {
  /** The number of the cell since the Unix epoch, by the policy's `width`. */
  readonly ordinal: Ordinal
  /** Units taken (admitted). */
  readonly taken: number
  /** Units refunded. */
  readonly given: number
  /**
   * In what a store says of a bucket: units in it when the cell began, those of the cell included. Then the cell is the running one,
   * and `taken` and `given` are all units that the store has heard of. In what a node sends: so many units it knows to be in it, in the
   * same way of speaking, though the store has lost what they were: the store takes up what it lacks.
   */
  readonly level?: number
  /**
   * Units refused, which count towards nothing: that others know how much is asked for. Only grows, like the others. In what a store
   * says of a bucket: all that it has heard of. Absent: 0.
   */
  readonly refused?: number
}

/** The counts of one key that a node sends. */
export interface SyncEntry {
  readonly policy: StorePolicy
  readonly key: string
  /** This node's absolute counts. A cell with 0 taken and 0 given only asks for the total and writes nothing. */
  readonly cells: readonly Cell[]
  /** The key's last reset as this node knows it, where that concerns the first cell (see `lastCellOf`). Absent for none. */
  readonly epoch?: number
  /** Tells the other nodes to send what they have of the key, also where it is little. */
  readonly ask?: true
  /** Quota taken ahead: such an entry has no cells. A store without leases answers without `lease`. */
  readonly lease?: LeaseAsk
}

/** What came back for one entry. */
export interface SyncResult {
  /**
   * The cluster's totals: for a fixed window the cells that were sent, in that order; for a sliding one every cell of
   * the window that is not empty (those up to `cells` behind the newest sent one), oldest first; for a bucket one cell with its `level`.
   */
  readonly cells: readonly Cell[]
  /** Milliseconds for which the key is still blocked; 0 when it is not. */
  readonly blocked: number
  /** The block was set by hand. */
  readonly manual?: true
  /**
   * The key was reset, and the entry's units were counted before that as far as its node knows (its `epoch` is older or
   * absent): nothing of it was written. `cells` are of after the reset.
   */
  readonly epoch?: number
  /** The answer to `lease`. */
  readonly lease?: LeaseReply
}

/**
 * A change of a block.
 * - `'exceeded'`: a limit was exceeded. The first one decides: while a block lasts, another `exceeded` changes nothing.
 * - `'set'`: blocked by hand: replaces what is there.
 * - `'restore'`: sent again after the store lost its data; keeps the longer one.
 * - `'lift'`: unblocked by hand.
 * - `'reset'`: the key's counts begin anew with `epoch`, at all nodes: the store forgets them, and how often the key was
 *   blocked; and ends its block, unless that was set by hand. A reset that is not newer than the known one changes nothing.
 */
export interface BlockChange {
  readonly policy: StorePolicy
  readonly key: string
  readonly kind: 'exceeded' | 'set' | 'restore' | 'lift' | 'reset'
  /** Milliseconds from now for which the key is blocked; 0 for `'lift'` and `'reset'`. */
  readonly remaining: number
  /** Of a `'restore'`: the block was set by hand. */
  readonly manual?: true
  /**
   * Of a `'reset'`: its moment, a whole number of milliseconds since the Unix epoch by the clock that the policy goes by, and
   * more than any earlier one of the key. Of an `'exceeded'`: the key's last reset as this node knows it; a store that knows
   * of a newer one changes nothing.
   */
  readonly epoch?: number
  /**
   * Of an `'exceeded'` only: the store remembers how often the key was blocked, and blocks it for
   * `remaining · factor^n`, at most `max` (but never less than `remaining`), after n blocks that it remembers. Each is
   * remembered for `memory` after it ended.
   */
  readonly growth?: CooldownGrowth
}

/** A key's block as the store knows it. */
export interface BlockState {
  readonly policyId: string
  readonly key: string
  /** Milliseconds from now; 0 when the block was lifted. */
  readonly remaining: number
  /** Set by hand. */
  readonly manual?: true
  /** The key's last reset, as long as nodes may hold counts of before it. */
  readonly epoch?: number
}

/** One exchange, as a node asks for it. */
export interface SyncRequest {
  readonly entries: readonly SyncEntry[]
  readonly blocks: readonly BlockChange[]
  /**
   * The time that the nodes go by, milliseconds since the Unix epoch: in heartbeats, and while it is far from what the store's
   * clock shows, as that was stepped and nodes approach it slowly. A store that goes by its own clock, for the age of cells
   * or the end of blocks, goes by this one instead. Absent until the store has answered.
   */
  readonly time?: number
  /** Present in heartbeats; without it the reply's `heartbeat` is absent. */
  readonly heartbeat?: HeartbeatRequest
}

/** What a node tells of itself, and asks for, once a heartbeat. */
export interface HeartbeatRequest {
  /** How long this node counts as live if it is not heard of again, in milliseconds. */
  readonly ttl: number
  /** The `cursor` of the last heartbeat's reply; undefined at a node's start: everything is handed out. */
  readonly cursor: string | undefined
  /** The policies whose hot keys and blocks this node wants. */
  readonly policies: readonly StorePolicy[]
  /** What this node tells of itself, up to 8,192 UTF-16 units; kept as long as the node counts as live. */
  readonly status?: string
  /** News of leases are wanted. */
  readonly leases?: true
  /**
   * What this node's rules are, up to 8,192 UTF-16 units; kept for a minute, so that nodes notice rules of one name that are not
   * the same. With it the node asks for what others tell.
   */
  readonly rules?: string
  /** Somebody looks at the cluster here: hand out all statuses, and let the other nodes know for 10 s that they are wanted. */
  readonly watch?: true
}

/** What an exchange brings back. */
export interface SyncReply {
  /** The store's clock while it handled the request, milliseconds since the Unix epoch. */
  readonly time: number
  /** Parallel to `entries`; undefined for a part that failed and must be sent again. */
  readonly results: readonly (SyncResult | undefined)[]
  /** Parallel to `blocks`: milliseconds for which the key is blocked after the change; undefined when it failed. */
  readonly blocks: readonly (number | undefined)[]
  readonly heartbeat?: HeartbeatReply
}

/** What a heartbeat brings back: who is there, and what changed since the last one. */
export interface HeartbeatReply {
  /** Live nodes, this one included; at least 1. */
  readonly nodes: number
  /** Changes when the store lost data: send running counts and remaining blocks again. */
  readonly generation: string
  /** To be handed back with the next heartbeat. Opaque. */
  readonly cursor: string
  /** Blocks that were set or lifted since the cursor; all of them when there was none. */
  readonly blocks: readonly BlockState[]
  /** At a node's start (no cursor): keys whose total passed `hot` in their running cell or window. */
  readonly hot: readonly TotalAnnouncement[]
  /**
   * By how much the time that nodes go by (`time` of their heartbeats) is ahead of the store's clock, in milliseconds, if one
   * of them said lately that it is far from it, and none since that it is not: a node that starts joins them. A store
   * that does not support it leaves this out.
   */
  readonly ahead?: number
  /** When `leases` was set: keys whose leases are news that some nodes may not have heard, those of the last heartbeat lifetime. */
  readonly leases?: readonly LeaseNotice[]
  /** Whether any node watches the cluster. A store that does not support it leaves this out. */
  readonly watched?: boolean
  /** When `watch` was set: the newest status of each live node that told one. */
  readonly statuses?: readonly StatusReport[]
  /**
   * When `rules` was told: every other text that nodes told in the last minute, each once, up to 64 of them. A store that does
   * not support it leaves this out.
   */
  readonly rules?: readonly RulesReport[]
}

/** What a node told of its rules. */
export interface RulesReport {
  /** The node that told this text last. */
  readonly node: string
  readonly rules: string
}

/** A live node's status, as the store keeps it. */
export interface StatusReport {
  readonly node: string
  readonly status: string
  /** Milliseconds since the store got it. */
  readonly age: number
}

/** Totals of a key that passed its `hot` mark or reached a limit. Facts, not verdicts: each node compares for itself. */
export interface TotalAnnouncement {
  readonly type: 'total'
  readonly policyId: string
  readonly key: string
  /** As in `SyncResult.cells`. */
  readonly cells: readonly Cell[]
  /** The key's last reset, where that concerns the first cell: these units were counted after it. */
  readonly epoch?: number
}

/** A node wants to know how much of a key was used (`SyncEntry.ask`). */
export interface AskAnnouncement {
  readonly type: 'ask'
  readonly policyId: string
  readonly key: string
}

/** A block that was set, or lifted (`remaining` 0), or a reset (`epoch`). */
export interface BlockAnnouncement extends BlockState {
  readonly type: 'block'
}

/** A policy whose requests the store decides about. The same object for every question of one policy. */
export interface DecidedPolicy {
  /** As `StorePolicy.id`. */
  readonly id: string
  /** What the store does, by its name or by calling it. */
  readonly step: AtomicStep
  readonly parameters: readonly number[]
}

/**
 * What a node wants of a key.
 * - `'take'`: to count `units` if they fit. 0 units only look.
 * - `'add'`: to count `units` whether or not they fit.
 * - `'give-back'`: to return `units` that were taken at the time `at`.
 * - `'reset'`: the key to be as one that was never used.
 */
export interface Question {
  readonly policy: DecidedPolicy
  readonly key: string
  readonly kind: 'take' | 'add' | 'give-back' | 'reset'
  /** A finite number; more than 0, but for looks and resets. */
  readonly units: number
  /** Units per interval for the key: the policy's limit, or its own. 0, `Infinity`, or at least 1. */
  readonly limit: number
  /** When the units were taken or are counted, by the time that the nodes go by, milliseconds since the Unix epoch. */
  readonly at: number
}

/** Questions that are answered in one atomic step: either one of any kind, or several takes, each of another policy. */
export interface Decide {
  /** Grows with each request of the node. The same when it is asked again. */
  readonly sequence: number
  /** It was asked before, without an answer: what was done of it then must not be done again. */
  readonly again?: true
  /** Of a `'give-back'`: of a request without an answer; nothing comes back unless that one counted. */
  readonly of?: number
  /** The time that the nodes go by. */
  readonly time: number
  /** That time is far from what the store's clock shows, as that was stepped: the store goes by it in everything. */
  readonly stepped?: true
  /** All takes are counted if all of them fit, or else none. */
  readonly questions: readonly Question[]
}

/** A node's way to ask a store about single requests. Its answers are idempotent, and what it keeps expires by itself. */
export interface Decider {
  /** Questions about keys of the same part may be asked together. */
  partOf(key: string): number
  /**
   * One atomic step.
   *
   * @returns a verdict for each question: what it would have been alone where another one did not fit. Of kinds other than
   * `'take'`: one that allows, whose numbers say nothing. Undefined, with nothing done, where the store answers but what it holds of a
   * key makes no sense: then that request alone is decided without it
   * @throws (rejects) when the outcome is not known. It may stay pending: the node has a deadline of its own
   */
  decide(request: Decide): Promise<readonly Verdict[] | undefined>
}

/** What the store tells the nodes between two exchanges. It may be lost: that costs accuracy, never correctness. */
export type Announcement = TotalAnnouncement | BlockAnnouncement | AskAnnouncement | LeaseNotice

/**
 * The last cell that a reset concerns: the one after that of its moment, since clocks of nodes may be a little ahead. Units of
 * later cells count whether or not their node has heard of the reset.
 */
export function lastCellOf(epoch: number, width: number): Ordinal {
  return (ordinalAt(epoch, width) + 1) as Ordinal
}

/** Of fixed windows, the cells up to `lastCellOf` that may still count for anybody: a store forgets a key's counts in these. */
export const RESET_CELLS = 3

/** The last time that a store's clock may show: up to here ordinals of the shortest buckets leave room for what meters add to them. */
export const LATEST = 4e13
