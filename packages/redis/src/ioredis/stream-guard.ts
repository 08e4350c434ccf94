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

/** Guards all connections of a client to servers, and those to Sentinels that it asks for them. */
export function guard(client: GuardedClient): void {
  // ioredis listens to the socket by then: it tells of a connection a tick after it was made, before any bytes are read.
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
 * Makes whatever ioredis throws over the bytes of a server the end of that connection, as a broken one ends: with an error, and a
 * new attempt. Otherwise it would end the process, since nobody stands above the listener of a socket to catch it: ioredis reads
 * the parts of a reply to `SUBSCRIBE` without asking whether they are there, and prints a reply that it did not wait for, be it null.
 *
 * ioredis 5 throws at once. ioredis 6 catches what it throws, and throws it again in a tick of its own, so ticks that are asked for
 * while it reads are looked after too. Nothing of anybody else runs then: promises are settled later, and so are messages told.
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
