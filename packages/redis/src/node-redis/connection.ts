import type { Clock, TimerHandle } from '@weir/core'
import { afterSilence, soon } from '@weir/core/sync'
import { type Client, destroy } from './client.ts'

/** Milliseconds between attempts to connect, so that the return of a server is noticed well within a second. */
const RETRY_DELAY = 200

export interface ConnectionOptions {
  readonly clock: Clock
  /** Milliseconds within which a server must answer the handshake. */
  readonly patience: number
  /** Makes a client that is not connected, for the server to use now. */
  make(): Client | Promise<Client>
  /** Called with each new connection. */
  opened?(client: Client): void
  /** Called if the connection was lost, or could not be opened. */
  lost?(): void
}

/**
 * Keeps one connection to a server, each time with a new client. The client's own reconnecting is off, because its delays grow to seconds,
 * it waits forever for a handshake that hangs, and it keeps the process alive.
 */
export class Connection {
  readonly #options: ConnectionOptions
  #client: Client | undefined
  /** The client that is connecting. */
  #next: Client | undefined
  #retry: TimerHandle | undefined
  #closed = false
  #held = 0
  /** Resolves at the end of the first attempt to connect. It never rejects. */
  readonly #first: Promise<void>
  #firstDone = false
  #lastError: unknown
  #readyAt = 0
  /** Resolves once the connection that replaces a lost one is ready, or can't be opened. It never rejects. */
  #replaced: Promise<void> | undefined
  #replacing = false
  /** The last attempt waited for a silent server. */
  #hung = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#first = this.#attempt().then(() => {
      this.#firstDone = true
    })
  }

  get ready(): boolean {
    return this.#client !== undefined
  }

  get lastError(): unknown {
    return this.#lastError
  }

  /** Waits for the first attempt to connect, and for the replacement of a lost connection. Later attempts run in the background. */
  async connected(): Promise<boolean> {
    if (!this.ready) await (this.#firstDone ? this.#replacement() : this.#first)
    return this.ready
  }

  /** Returns whether a lost connection was replaced soon. */
  async replaced(): Promise<boolean> {
    return !this.ready && (await this.connected())
  }

  /** Each caller waits for a moment, because the process may be frozen again before the connection is ready. */
  #replacement(): Promise<void> | undefined {
    return this.#replacing && this.#replaced !== undefined ? soon(this.#options.clock, this.#replaced) : undefined
  }

  command(...command: readonly string[]): Promise<unknown> {
    const client = this.#client
    if (client === undefined) return Promise.reject(this.#lastError ?? new Error('not connected'))
    const reply = client.sendCommand(command)
    reply.catch((error: unknown) => {
      // After a failover the old primary replies with these until the client looks up the new one.
      if (error instanceof Error && /^(READONLY|LOADING|MASTERDOWN)/.test(error.message)) this.#drop(client, error)
    })
    return reply
  }

  /** Sends a command that has been redirected while its slot moves. */
  ask(...command: readonly string[]): Promise<unknown> {
    this.command('ASKING').catch(() => {})
    return this.command(...command)
  }

  /** Closes a silent connection, and opens a new one immediately. */
  renew(): void {
    const client = this.#client
    if (client === undefined) return
    this.#drop(client, new Error('The server did not answer in time.'), 0)
  }

  /** Keeps the process alive until `release`. */
  hold(): void {
    if (this.#held++ === 0) this.#apply()
  }

  release(): void {
    if (--this.#held === 0) this.#apply()
  }

  close(): void {
    this.#closed = true
    if (this.#retry !== undefined) this.#options.clock.clearTimeout(this.#retry)
    this.#retry = undefined
    for (const client of [this.#client, this.#next]) if (client !== undefined) destroy(client)
    this.#client = undefined
  }

  async #attempt(): Promise<void> {
    const { clock, patience, make, opened, lost } = this.#options
    let answered: (() => void) | undefined
    this.#hung = false
    try {
      const client = await make()
      if (this.#closed) return
      this.#next = client
      let hung: (error: Error) => void
      const over = new Promise<never>((_resolve, reject) => {
        hung = reject
      })
      // Without a listener the error would be thrown. The client doesn't reconnect, so every error ends its connection.
      client.on('error', (error) => {
        if (!this.#drop(client, error)) this.#lastError = error
      })
      client.on('connect', () => {
        // Before this event there is no socket to close.
        if (this.#closed) {
          destroy(client)
          hung(new Error('closed'))
          return
        }
        this.#apply()
        answered = afterSilence(clock, patience, () => {
          this.#hung = true
          destroy(client)
          hung(new Error('The server did not answer in time.'))
        })
      })
      this.#apply()
      await Promise.race([client.connect(), over])
      this.#next = undefined
      if (this.#closed) {
        destroy(client)
        return
      }
      this.#client = client
      this.#readyAt = clock.monotonic()
      this.#apply()
      opened?.(client)
    } catch (error) {
      this.#next = undefined
      this.#lastError = error
      this.#retryLater(RETRY_DELAY)
      lost?.()
    } finally {
      answered?.()
    }
  }

  /** @returns whether the client was the one in use */
  #drop(client: Client, error: unknown, delay?: number): boolean {
    if (client !== this.#client) return false
    this.#client = undefined
    this.#lastError = error
    destroy(client)
    const { clock, lost } = this.#options
    if (delay === undefined && !this.#closed && clock.monotonic() - this.#readyAt >= RETRY_DELAY) {
      this.#replaced = this.#replace()
    } else this.#retryLater(delay ?? RETRY_DELAY)
    lost?.()
    return true
  }

  /**
   * Replaces a good connection at once, because it may have died while the process was frozen, or because it was idle. The next attempt may
   * end like that, too. But if it fails soon, or in silence, the server is down.
   */
  async #replace(): Promise<void> {
    this.#replacing = true
    for (let begun = Number.NEGATIVE_INFINITY; !this.ready && !this.#closed; ) {
      const now = this.#options.clock.monotonic()
      if (now - begun < RETRY_DELAY || this.#hung) break
      begun = now
      await this.#attempt()
    }
    this.#replacing = false
    if (!this.ready) this.#retryLater(RETRY_DELAY)
  }

  #retryLater(delay: number): void {
    if (this.#closed || this.#replacing || this.#retry !== undefined) return
    this.#retry = this.#options.clock.setTimeout(() => {
      this.#retry = undefined
      void this.#attempt()
    }, delay)
  }

  #apply(): void {
    for (const client of [this.#client, this.#next]) {
      if (this.#held > 0) client?.ref()
      else client?.unref()
    }
  }
}
