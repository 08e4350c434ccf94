/** The parts of a pg client that are used. */
export interface GuardedClient {
  readonly ssl?: unknown
  readonly connection?: {
    readonly stream?: GuardedStream
    on?(event: 'sslconnect', listener: () => void): unknown
  }
}

/** The parts of a connection's socket that are used. */
interface GuardedStream {
  emit(event: string | symbol, ...args: readonly unknown[]): boolean
  destroy(error?: Error): unknown
}

/** The most bytes of a message. 500 keys of a long sliding window need a few million. */
const LONGEST_MESSAGE = 2 ** 26
/** The header of a message: one byte for its kind, and four for its length, which includes these four. */
const HEADER = 5
const [ERROR, NOTICE] = [0x45, 0x4e]

/**
 * Ends a connection if pg throws while it reads the server's bytes. Otherwise the error would end the process, because no caller catches
 * the errors of a socket's listener. pg doesn't check if a message is complete. It would loop forever on a message whose length is below
 * four, and on an error without an end. So messages are inspected before pg receives them.
 */
export function guard(client: GuardedClient): void {
  const { connection } = client
  if (connection?.stream === undefined) return
  // TLS replaces the stream. pg listens to the new one at this event, and has read nothing of it yet.
  if (client.ssl) connection.on?.('sslconnect', () => guardStream(connection.stream as GuardedStream))
  else guardStream(connection.stream)
}

function guardStream(stream: GuardedStream): void {
  const { emit } = stream
  const messages = new Messages()
  stream.emit = (event, ...args) => {
    if (event !== 'data') return emit.call(stream, event, ...args)
    try {
      messages.read(args[0] as Buffer)
      return emit.call(stream, event, ...args)
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)))
      return true
    }
  }
}

/** The messages of a server, whose bytes arrive in pieces. */
class Messages {
  readonly #header = Buffer.alloc(HEADER)
  #read = 0
  /** Bytes of the message that have not arrived yet. */
  #left = 0
  /** The received part of a message that is inspected. */
  #body: Buffer[] | undefined

  /** @throws if the message is impossible in PostgreSQL's protocol */
  read(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#read < HEADER) {
        this.#header[this.#read++] = bytes[at++] as number
        if (this.#read === HEADER) this.#begin()
      } else {
        const taken = Math.min(this.#left, bytes.length - at)
        this.#body?.push(bytes.subarray(at, at + taken))
        at += taken
        this.#left -= taken
      }
      if (this.#read === HEADER && this.#left === 0) this.#end()
    }
  }

  #begin(): void {
    const length = this.#header.readInt32BE(1)
    if (length < HEADER - 1 || length > LONGEST_MESSAGE) throw new Error(`The server sent a message of ${length} bytes.`)
    this.#left = length - (HEADER - 1)
    const kind = this.#header[0]
    this.#body = kind === ERROR || kind === NOTICE ? [] : undefined
  }

  #end(): void {
    this.#read = 0
    if (this.#body !== undefined) checkFields(Buffer.concat(this.#body))
    this.#body = undefined
  }
}

/** Checks an error or a notice. Each field is a byte for its kind and a text that ends with zero. A zero ends the message. */
function checkFields(body: Buffer): void {
  let at = 0
  while (body[at] !== 0) {
    const end = at < body.length ? body.indexOf(0, at + 1) : -1
    if (end < 0) throw new Error('The server sent an error without an end.')
    at = end + 1
  }
}
