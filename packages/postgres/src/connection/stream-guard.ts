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

/** Bytes of a message at most: 500 keys of a long sliding window take a few million. */
const LONGEST_MESSAGE = 2 ** 26
/** A byte that says what it is, and four with its length, which count themselves. */
const HEADER = 5
const [ERROR, NOTICE] = [0x45, 0x4e]

/**
 * Makes of whatever pg throws over the bytes of a server the end of that connection, as a broken one ends. Otherwise it would end
 * the process, since nobody stands above the listener of a socket to catch it: pg reads messages without asking whether all of
 * them is there. Over a length below that of the length itself, and over an error without an end, it would go on for ever; so
 * messages are looked at before it gets them.
 */
export function guard(client: GuardedClient): void {
  const { connection } = client
  if (connection?.stream === undefined) return
  // With TLS there is another stream in place of the first one, and pg listens to that by then; nothing has been read of it yet.
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

/** The messages of a server, as they come in pieces. */
class Messages {
  readonly #header = Buffer.alloc(HEADER)
  #read = 0
  /** Bytes of the message that are still to come. */
  #left = 0
  /** The received part of a message that is inspected. */
  #body: Buffer[] | undefined

  /** @throws for what no server of PostgreSQL says */
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

/** An error or a notice: of each field a byte that says what it is, and a text that ends with zero; a zero at the end of all. */
function checkFields(body: Buffer): void {
  let at = 0
  while (body[at] !== 0) {
    const end = at < body.length ? body.indexOf(0, at + 1) : -1
    if (end < 0) throw new Error('The server sent an error without an end.')
    at = end + 1
  }
}
