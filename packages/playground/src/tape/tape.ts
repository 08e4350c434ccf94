/** What an exchange was, as it is drawn. */
export const KIND = { exchange: 0, heartbeat: 1, announcement: 2 } as const

/**
 * What happened in a run, moment by moment: columns of equal length for each kind of thing. Times are milliseconds since the begin of the first
 * interval; what never happened is `Infinity`.
 */
export interface Tape {
  /** In order of time. */
  readonly requests: {
    readonly time: Float64Array
    readonly node: Uint8Array
    /** 1 where it was allowed. */
    readonly allowed: Uint8Array
  }
  /** Exchanges of nodes with the store and back, and announcements of the store, in the order in which they were sent. */
  readonly messages: {
    readonly sent: Float64Array
    /** When the store had it; of an announcement as `sent`. */
    readonly handled: Float64Array
    readonly arrived: Float64Array
    readonly node: Uint8Array
    readonly kind: Uint8Array
    /** Units of the running interval that the store has, as the message brings them; NaN where it brings none. */
    readonly total: Float64Array
  }
  /** Times at which a node began to decide without the store (1), and to decide with it again (0). */
  readonly states: readonly { readonly time: number; readonly node: number; readonly storeDown: boolean }[]
}

/** What of a tape is moved, not copied, from one thread to another. */
export function buffersOf({ requests, messages }: Tape): ArrayBufferLike[] {
  return [...Object.values(requests), ...Object.values(messages)].map(({ buffer }) => buffer)
}
