import { Recent } from './recent.ts'

/**
 * The reason for a decision.
 * - `'ok'`: allowed.
 * - `'limit'`: the key's units of this interval are used up, or the request costs more than the remaining quota.
 * - `'cooldown'`: the key exceeded its limit, and the policy's cooldown is not over.
 * - `'blocked'`: the key is blocked manually (`throttler.block`).
 * - `'storeDown'`: the store is down, and the policy's `failMode` rejected the request.
 * - `'denied'`: the client is on the adapter's `deny` list.
 * - `'overflow'`: the table of keys is full, and the throttler's `overflow` rejects new keys.
 * - `'none'`: allowed, because no policy applies.
 */
export type DecisionReason = 'ok' | 'limit' | 'cooldown' | 'blocked' | 'storeDown' | 'denied' | 'overflow' | 'none'

/** The reason for a rejection. */
export type RejectionReason = Exclude<DecisionReason, 'ok' | 'denied' | 'none'>

/**
 * The source of the counts or blocks that a rejection is based on.
 * - `'local'`: this process's own count, or a block that it set itself.
 * - `'global'`: totals or blocks that the store returned.
 * - `'announcement'`: totals or blocks that the store announced between two syncs.
 * - `'storeDown'`: the store is down, and the policy's `failMode` decided.
 * - `'overflow'`: the table of keys is full.
 */
export type RejectionSource = 'local' | 'global' | 'announcement' | 'storeDown' | 'overflow'

/**
 * The reason for which a key's counts were sent.
 * - `'countdown'`: this process had enough unsent units that all processes together could have come near the limit. Or a lease was
 *   nearly used up.
 * - `'hello'`: this process got the first request to a key that is near its limit at other processes.
 * - `'refund'`: units were refunded to a key that other processes may count as full.
 * - `'lease'`: a request waited for quota from the store.
 * - `'proof'`: a sliding window or bucket is full, or a charge exceeded the limit, and other processes may not have these counts yet.
 * - `'span-end'`: a span ended, and there was no other reason.
 * - `'resend'`: the store had lost its data, or was back after an outage.
 * - `'close'`: the throttler was closed, or a policy was removed.
 * - `'usage'`: a process called `usage()` for the key, or slots were reported or returned.
 */
export type ExchangeReason = 'countdown' | 'hello' | 'refund' | 'lease' | 'proof' | 'span-end' | 'resend' | 'close' | 'usage'

/**
 * The cause of a failed sync. The list is short, so that it can be the label of a metric.
 * - `'timeout'`: the store did not answer within its timeout. The outcome is unknown.
 * - `'unavailable'`: there is no connection.
 * - `'reply'`: the answer can't be read.
 * - `'rejected'`: the store answered with an error, e.g. out of memory, read-only, no permission.
 */
export type SyncFailureCause = 'timeout' | 'unavailable' | 'reply' | 'rejected'

/** The origin of a block: the key exceeded its limit in this process, this process blocked it manually, or the store reported it. */
export type BlockCause = 'exceeded' | 'manual' | 'remote'

/** The sources as numbers: their offsets from the first index of a reason in `Stats.rejections`. */
export const LOCAL = 0
export const GLOBAL = 1
export const ANNOUNCED = 2
export const OVERFLOWED = 3
export type SourceIndex = typeof LOCAL | typeof GLOBAL | typeof ANNOUNCED | typeof OVERFLOWED

const SOURCES = ['local', 'global', 'announcement', 'overflow'] as const
/** Rejections by limit come first, so the number of a source is also their index. */
const BY_LIMIT = 0
const BY_COOLDOWN = 4
const BY_HAND = 8
const BY_STORE_DOWN = 12
const BY_OVERFLOW = 13

/** The meaning of each index of `Stats.rejections`. */
export const REJECTIONS: readonly { readonly reason: RejectionReason; readonly source: RejectionSource }[] = Object.freeze([
  ...SOURCES.map((source) => ({ reason: 'limit', source }) as const),
  ...SOURCES.map((source) => ({ reason: 'cooldown', source }) as const),
  ...SOURCES.map((source) => ({ reason: 'blocked', source }) as const),
  { reason: 'storeDown', source: 'storeDown' },
  { reason: 'overflow', source: 'overflow' },
])

/** The meaning of each index of `Stats.exchanges`. */
const EXCHANGES: readonly ExchangeReason[] = Object.freeze([
  'countdown',
  'hello',
  'refund',
  'lease',
  'proof',
  'span-end',
  'resend',
  'close',
  'usage',
])
export const COUNTDOWN = 0
export const HELLO = 1
export const REFUND = 2
export const LEASE = 3
export const PROOF = 4
export const SPAN_END = 5
export const RESEND = 6
export const CLOSE = 7
export const ASKED = 8

/** Reservations of one policy in this process. The last three are sums since the start. */
export interface Reservations {
  open: number
  /** Units that are reserved now. */
  units: number
  settled: number
  cancelled: number
  expired: number
}

/** The sums of one policy since the start. Typed arrays make a count one addition, without allocation. */
export class Stats {
  /**
   * The meaning of each index of `rejections` and `exchanges`. It is a field, so that code that reads the sums later needs nothing else
   * from this file.
   */
  readonly kinds: typeof REJECTIONS = REJECTIONS
  readonly reasons: typeof EXCHANGES = EXCHANGES
  /** Rejected requests, by index in `REJECTIONS`. */
  readonly rejections: Float64Array = new Float64Array(REJECTIONS.length)
  /** Key writes, by index in `EXCHANGES`. */
  readonly exchanges: Float64Array = new Float64Array(EXCHANGES.length)
  readonly blocks: Record<BlockCause, number> = { exceeded: 0, manual: 0, remote: 0 }
  /** Open reservations of this process and their units, and how the others have ended. */
  readonly reservations: Reservations = { open: 0, units: 0, settled: 0, cancelled: 0, expired: 0 }
  /** The most by which a key's confirmed counts exceeded its limit, as a part of the limit, in each 5 minutes of the last hour. */
  readonly overshoot: Recent = new Recent(12, 300_000)

  countRejection(reason: RejectionReason, source: SourceIndex): void {
    const place = placeOf(reason) + (reason === 'storeDown' || reason === 'overflow' ? 0 : source)
    this.rejections[place] = (this.rejections[place] as number) + 1
  }

  /** Does the same as `countRejection` for the most common reason, without a search for its index. */
  countByLimit(source: SourceIndex): void {
    this.rejections[source] = (this.rejections[source] as number) + 1
  }

  countExchange(place: number): void {
    this.exchanges[place] = (this.exchanges[place] as number) + 1
  }

  /** All rejected requests. */
  get rejected(): number {
    let sum = 0
    for (const count of this.rejections) sum += count
    return sum
  }
}

function placeOf(reason: RejectionReason): number {
  switch (reason) {
    case 'limit':
      return BY_LIMIT
    case 'cooldown':
      return BY_COOLDOWN
    case 'blocked':
      return BY_HAND
    case 'storeDown':
      return BY_STORE_DOWN
    case 'overflow':
      return BY_OVERFLOW
  }
}
