/**
 * Why a decision came out as it did.
 * - `'ok'`: allowed.
 * - `'limit'`: the key's units of this interval are used up, or the request costs more than what is left.
 * - `'cooldown'`: the key exceeded its limit, and the policy's cooldown is not over.
 * - `'blocked'`: blocked by hand (`throttler.block`).
 * - `'storeDown'`: rejected by what this node may allow while the store is away.
 * - `'denied'`: on the adapter's `deny` list.
 * - `'overflow'`: the table of keys is full and the throttler's `overflow` rejects new keys.
 * - `'none'`: allowed, as no policy applies.
 */
export type DecisionReason = 'ok' | 'limit' | 'cooldown' | 'blocked' | 'storeDown' | 'denied' | 'overflow' | 'none'

/** Why a request was rejected. */
export type RejectionReason = Exclude<DecisionReason, 'ok' | 'denied' | 'none'>

/**
 * Where the knowledge that a rejection rests on came from.
 * - `'local'`: this node's own count, or a block that it set itself: it needed nobody else.
 * - `'global'`: totals or blocks that the store returned.
 * - `'announcement'`: totals or blocks that the store announced between two exchanges.
 * - `'storeDown'`: the store was away, and the policy's `failMode` decided.
 * - `'overflow'`: the table of keys was full.
 */
export type RejectionSource = 'local' | 'global' | 'announcement' | 'storeDown' | 'overflow'

/**
 * Why a key's counts were sent.
 * - `'countdown'`: so much was unsent that the nodes together could have come near the limit.
 * - `'hello'`: the first request to a key that is hot at other nodes.
 * - `'refund'`: units were refunded to a key that others may hold for full.
 * - `'lease'`: a request waited for units of the store.
 * - `'proof'`: a sliding window is full, and others may not know yet.
 * - `'span-end'`: none of these: a span ended.
 * - `'resend'`: the store had lost its data, or was back after an outage.
 * - `'close'`: the throttler was closed, or a policy was taken out.
 * - `'usage'`: a node asked how much of the key was used.
 */
export type ExchangeReason = 'countdown' | 'hello' | 'refund' | 'lease' | 'proof' | 'span-end' | 'resend' | 'close' | 'usage'

/**
 * Why an exchange failed, as a short list that is fit for a label.
 * - `'timeout'`: no answer within the store's deadline; the outcome is unknown.
 * - `'unavailable'`: no connection.
 * - `'reply'`: an answer that can't be read.
 * - `'rejected'`: the store answered with an error, e.g. out of memory, read-only, no permission.
 */
export type SyncFailureCause = 'timeout' | 'unavailable' | 'reply' | 'rejected'

/** How a block came about: by exceeding the limit at this node, by hand at this node, or told by the store. */
export type BlockCause = 'exceeded' | 'manual' | 'remote'

/** Sources as numbers, as they lie in `Stats.rejections`. */
export const LOCAL = 0
export const GLOBAL = 1
export const ANNOUNCED = 2
export const OVERFLOWED = 3
export type SourceIndex = typeof LOCAL | typeof GLOBAL | typeof ANNOUNCED | typeof OVERFLOWED

const SOURCES = ['local', 'global', 'announcement', 'overflow'] as const
/** Rejections by limit come first, so a source is the place of its own. */
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

/** Sums of one policy since the start. Numbers in typed arrays: to count is one addition, and allocates nothing. */
export class Stats {
  /**
   * The meaning of each index of `rejections` and `exchanges`. It is a field, so that code that reads the sums later needs nothing else
   * from this file.
   */
  readonly kinds: typeof REJECTIONS = REJECTIONS
  readonly reasons: typeof EXCHANGES = EXCHANGES
  /** Rejected requests, by place in `REJECTIONS`. */
  readonly rejections: Float64Array = new Float64Array(REJECTIONS.length)
  /** Sent counts of keys, by place in `EXCHANGES`. */
  readonly exchanges: Float64Array = new Float64Array(EXCHANGES.length)
  readonly blocks: Record<BlockCause, number> = { exceeded: 0, manual: 0, remote: 0 }

  countRejection(reason: RejectionReason, source: SourceIndex): void {
    const place = placeOf(reason) + (reason === 'storeDown' || reason === 'overflow' ? 0 : source)
    this.rejections[place] = (this.rejections[place] as number) + 1
  }

  /** As `countRejection` by the most usual reason, without a search for its place. */
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
