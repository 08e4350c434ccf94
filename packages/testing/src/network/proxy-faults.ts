/** The faults of a proxy. All are off at the start, and can change at any time. */
export interface ProxyFaults {
  /** Milliseconds that each piece of a reply is held back; order is kept. */
  readonly latency: number
  /** Requests still reach the server, but no reply comes back. The connection stays open. */
  readonly loseReplies: boolean
  /**
   * Bytes of the next reply after which a connection is reset (RST), in the middle of the reply as a rule; `undefined` for
   * never. Each connection is reset, those that are made later too, so take it away for the server to be of use again.
   */
  readonly resetAfterBytes: number | undefined
  /** Both directions are silent, and no end of a connection is passed on: as when a machine in between loses power. */
  readonly halfOpen: boolean
  /**
   * Whatever a client sends is sent again on a second connection, so many milliseconds later: requests arrive twice, and
   * the second time late. Replies to the second ones are dropped. `undefined` for never. Takes effect for new connections.
   */
  readonly duplicate: number | undefined
  /** New connections are closed at once. */
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
