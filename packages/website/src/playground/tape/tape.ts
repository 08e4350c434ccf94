/** Kinds of syncs, as they are drawn. */
export const KIND = { exchange: 0, heartbeat: 1, announcement: 2 } as const

/**
 * The events of a run, moment by moment: columns of equal length for each kind. Times are milliseconds since the beginning of the first
 * interval. The time of an event that never happened is `Infinity`.
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

/** The buffers of a tape that move from one thread to another without a copy. */
export function buffersOf({ requests, messages }: Tape): ArrayBufferLike[] {
  return [...Object.values(requests), ...Object.values(messages)].map(({ buffer }) => buffer)
}
