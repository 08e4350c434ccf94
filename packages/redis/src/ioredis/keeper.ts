import type { Clock, TimerHandle } from '@weir/core'
import { soon } from '@weir/core/sync'
import type { Client } from './template.ts'

/** Milliseconds between attempts to connect, so that the return of a server is noticed well within a second. */
const RETRY_AFTER = 200

/** A timer that fires this much too late, in milliseconds, shows that the process stood still, and had no time to read. */
const STOOD_STILL = 500

/** How often an attempt is checked within the patience. A busy process delays the checks, so time in which it could read nothing doesn't count. */
const LOOKS = 10

/**
 * Keeps one ioredis client connected. ioredis's own reconnecting is off, because its delays grow to seconds, it waits forever for a
 * handshake that hangs, and it keeps the process alive. This class reconnects by the injected clock.
 */
export class Keeper {
  readonly #client: Client
  readonly #clock: Clock
  readonly #patience: number
  #retry: TimerHandle | undefined
  #closed = false
  /** An attempt has just waited for a silent server, so the next one starts without a delay. */
  #waited = false
  /** Resolves at the end of the first attempt to connect. It never rejects. */
  readonly #first: Promise<void>
  #firstDone = false
  /** When the client last became ready, on the monotonic clock. Undefined while it is not. */
  #readyAt: number | undefined
  /** Resolves once the connection that replaces a lost one is ready, or can't be opened. It never rejects. */
  #replaced: Promise<void> | undefined
  #replacing = false
  /** Callers that wait for the end of a connection that accepts no commands any more. */
  #whenEnded: (() => void)[] = []
  #lastError: unknown
  /** The error that the client reported during this attempt. ioredis itself rejects the attempt only with "connection is closed". */
  #told: unknown
  /** The database of the settings does not exist. */
  #elsewhere = false
  /** The last connection that was closed. */
  #ending: Client['stream']

  /** @param patience - milliseconds of silence after which an attempt is given up */
  constructor(client: Client, clock: Clock, patience: number) {
    this.#client = client
    this.#clock = clock
    this.#patience = patience
    // Without a listener ioredis writes errors to the console. They are kept as the cause of failures.
    for (const event of ['error', 'node error', 'sentinelError']) {
      client.on(event, (error: unknown) => {
        // Later errors contain only that this class closed the connection.
        if (this.#elsewhere) return
        this.#lastError = this.#told = error
        // ioredis would continue in database 0.
        if (!(error instanceof Error) || !/^ERR .*DB index/.test(error.message)) return
        this.#elsewhere = true
        this.#disconnect()
      })
    }
    client.on('ready', () => {
      this.#readyAt = clock.monotonic()
    })
    client.on('end', () => this.#ended())
    this.#first = this.#attempt().then(() => {
      this.#firstDone = true
    })
  }

  get ready(): boolean {
    return this.#client.status === 'ready' && !this.#elsewhere && !this.#dying
  }

  /** The reason why there is no connection, if one is known. */
  get lastError(): unknown {
    return this.#lastError
  }

  /** Waits for the first attempt to connect, and for the replacement of a lost connection. Later attempts run in the background. */
  async connected(): Promise<boolean> {
    if (this.#dying) await new Promise<void>((resolve) => this.#whenEnded.push(resolve))
    if (!this.ready) await (this.#firstDone ? this.#replacement() : this.#first)
    return this.ready
  }

  /** Each caller waits for a moment, because the process may be frozen again before the connection is ready. */
  #replacement(): Promise<void> | undefined {
    return this.#replacing && this.#replaced !== undefined ? soon(this.#clock, this.#replaced) : undefined
  }

  /** The server has closed the connection, but the client has not noticed. */
  get #dying(): boolean {
    return this.#client.status === 'ready' && this.#client.stream?.writable === false
  }

  /** Closes a silent connection, and opens a new one. */
  renew(): void {
    if (this.#closed) return
    this.#waited = true
    this.#disconnect()
  }

  /** Closes each connection only once, because ioredis adds a timer and a listener each time, which stay until the connection has ended. */
  #disconnect(): void {
    const { stream } = this.#client
    if (stream && stream === this.#ending) return
    this.#ending = stream
    this.#client.disconnect()
  }

  close(): void {
    this.#closed = true
    if (this.#retry !== undefined) this.#clock.clearTimeout(this.#retry)
    this.#retry = undefined
    this.#client.disconnect()
  }

  async #attempt(): Promise<void> {
    this.#told = undefined
    this.#elsewhere = false
    let silent = 0
    let heard = -1
    let watchdog: TimerHandle
    const watch = (): void => {
      const dueAt = this.#clock.monotonic() + this.#patience / LOOKS
      watchdog = this.#clock.setTimeout(() => {
        const { connecting = false, bytesRead = 0 } = this.#client.stream ?? { connecting: true }
        // A handshake takes several replies. An attempt may continue while a slow server sends them, but not during silence.
        if (!connecting && bytesRead > heard) {
          heard = bytesRead
          silent = 0
        } else if (this.#clock.monotonic() < dueAt + STOOD_STILL) silent += connecting ? 0.5 : 1
        if (silent < LOOKS) {
          watch()
          return
        }
        this.#waited = true
        this.#told ??= new Error(`no answer within ${this.#patience} ms`)
        this.#disconnect()
      }, this.#patience / LOOKS)
    }
    watch()
    try {
      await this.#client.connect()
    } catch (error) {
      this.#lastError = this.#told ?? error
      this.#retryLater()
    } finally {
      this.#clock.clearTimeout(watchdog)
    }
    // It was closed during the attempt, when ioredis may not have had a connection to close.
    if (this.#closed) this.#client.disconnect()
  }

  #ended(): void {
    const good = this.#readyAt !== undefined && this.#clock.monotonic() - this.#readyAt >= RETRY_AFTER
    this.#readyAt = undefined
    if (good && !this.#waited && !this.#closed && this.#retry === undefined) {
      this.#replaced = this.#replace()
    } else this.#retryLater()
    for (const resolve of this.#whenEnded.splice(0)) resolve()
  }

  /**
   * Replaces a good connection at once, because it may have died while the process was frozen, or because it was idle. The next attempt may
   * end like that, too. But if it fails soon, or in silence, the server is down.
   */
  async #replace(): Promise<void> {
    this.#replacing = true
    for (let begun = Number.NEGATIVE_INFINITY; !this.ready && !this.#closed; ) {
      const now = this.#clock.monotonic()
      if (now - begun < RETRY_AFTER || this.#waited) break
      begun = now
      await this.#attempt()
    }
    this.#replacing = false
    if (!this.ready) this.#retryLater()
  }

  #retryLater(): void {
    if (this.#closed || this.#replacing || this.#retry !== undefined) return
    const delay = this.#waited ? 0 : RETRY_AFTER
    this.#waited = false
    this.#retry = this.#clock.setTimeout(() => {
      this.#retry = undefined
      const { status } = this.#client
      if (status === 'end' || status === 'close' || status === 'wait') void this.#attempt()
      else if (status !== 'ready') this.#retryLater()
    }, delay)
  }
}
