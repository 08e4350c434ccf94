/** The parts of a client that are used, including clients that ioredis makes for itself. */
export interface GuardedClient {
  readonly stream?: GuardedStream | null
  /** Private to ioredis, so nothing may depend on it. */
  readonly connector?: { connectToSentinel?(...args: unknown[]): GuardedClient }
  on(event: string, listener: () => void): unknown
}

/** The parts of a connection's socket that are used. */
export interface GuardedStream {
  emit(event: string | symbol, ...args: readonly unknown[]): boolean
  destroy(error?: Error): unknown
}

/** Guards all connections of a client to servers, and its connections to Sentinels. */
export function guard(client: GuardedClient): void {
  // ioredis already listens to the socket, because it emits `connect` a tick after the connection. No bytes have been read yet.
  client.on('connect', () => {
    if (client.stream) guardStream(client.stream)
  })
  const { connector } = client
  const connect = connector?.connectToSentinel
  if (connector === undefined || connect === undefined) return
  connector.connectToSentinel = (...args) => {
    const sentinel = connect.apply(connector, args)
    guard(sentinel)
    return sentinel
  }
}

/**
 * Ends a connection if ioredis throws while it reads the server's bytes, as if the connection had failed. Otherwise the error would end the
 * process, because no caller catches the errors of a socket's listener. ioredis reads the parts of a reply to `SUBSCRIBE` without a check
 * that they exist, and fails on an unexpected reply that is null.
 *
 * ioredis 5 throws immediately. ioredis 6 catches its error and throws it again in a tick, so ticks that it requests while it reads are
 * guarded too. No other code runs in that time, because promises settle later, and messages are passed on later.
 */
function guardStream(stream: GuardedStream): void {
  const { emit } = stream
  const fail = (error: unknown): void => {
    stream.destroy(error instanceof Error ? error : new Error(String(error)))
  }
  const run = (callback: (...args: unknown[]) => void, args: unknown[]): void => {
    try {
      callback(...args)
    } catch (error) {
      fail(error)
    }
  }
  stream.emit = (event, ...args) => {
    if (event !== 'data') return emit.call(stream, event, ...args)
    const { nextTick } = process
    process.nextTick = (callback: (...args: never[]) => void, ...ticked: unknown[]) => nextTick(run, callback, ticked)
    try {
      return emit.call(stream, event, ...args)
    } catch (error) {
      fail(error)
      return true
    } finally {
      process.nextTick = nextTick
    }
  }
}
