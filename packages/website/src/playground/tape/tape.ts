/** Kinds of messages, as they are drawn. */
export const KIND = { sync: 0, heartbeat: 1, announcement: 2 } as const

/**
 * The events of a run, moment by moment: columns of equal length for each kind. Times are milliseconds since the beginning of the first
 * interval. The time of an event that never happened is `Infinity`.
 */
export interface Tape {
  /** In order of time. */
  readonly requests: {
    readonly time: Float64Array
    readonly node: Uint8Array
    /** 1 if it was allowed. */
    readonly allowed: Uint8Array
  }
  /** Syncs of processes, and announcements of the store, in the order in which they were sent. */
  readonly messages: {
    readonly sent: Float64Array
    /** Time at which the store handled it. For an announcement the same as `sent`. */
    readonly handled: Float64Array
    readonly arrived: Float64Array
    readonly node: Uint8Array
    readonly kind: Uint8Array
    /** Units of the current interval in the store, as the message contains them. NaN if it contains none. */
    readonly total: Float64Array
  }
  /** Times at which a process began to decide without the store (true), and with it again (false). */
  readonly states: readonly { readonly time: number; readonly node: number; readonly storeDown: boolean }[]
}

/** The buffers of a tape, to transfer them between threads without a copy. */
export function buffersOf({ requests, messages }: Tape): ArrayBufferLike[] {
  return [...Object.values(requests), ...Object.values(messages)].map(({ buffer }) => buffer)
}
