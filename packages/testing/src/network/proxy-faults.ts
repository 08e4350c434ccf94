/** The faults of a proxy. All are off at the start, and can change at any time. */
export interface ProxyFaults {
  /** Delays each piece of a reply by this many milliseconds. The pieces keep their order. */
  readonly latency: number
  /** Loses all replies, while requests still reach the server. The connection stays open. */
  readonly loseReplies: boolean
  /**
   * Resets each connection (RST) after this many bytes of its next reply, usually in the middle of it. `undefined` for never. New
   * connections are reset too, so set it to `undefined` before the server can be used again.
   */
  readonly resetAfterBytes: number | undefined
  /** Makes both directions silent and passes on no end of a connection, as when a machine in between loses power. */
  readonly halfOpen: boolean
  /**
   * Sends all data of a client again on a second connection, this many milliseconds later: requests arrive twice, and the second
   * time late. Replies on the second connection are dropped. `undefined` for never. Takes effect for new connections.
   */
  readonly duplicate: number | undefined
  /** Closes new connections immediately. */
  readonly reject: boolean
}

export const NO_FAULTS: ProxyFaults = {
  latency: 0,
  loseReplies: false,
  resetAfterBytes: undefined,
  halfOpen: false,
  duplicate: undefined,
  reject: false,
}
