import { type Clock, type TimerHandle, WeirError } from '@weir/core'
import type { Client, Template } from './template.ts'

/** Milliseconds between attempts to connect: a server that returns is noticed well within a second. */
const RETRY_AFTER = 200

/** Times the patience after which a connection that does not answer is given up for a new one. */
const LONG = 3

/** Everything as the text that the server sent, whatever parsers the application has set for its own queries. */
const TEXTS = { getTypeParser: () => (text: string) => text }

export interface SessionOptions {
  readonly template: Template
  readonly clock: Clock
  /** Milliseconds of silence after which a query counts as lost, and an attempt to connect is given up. */
  readonly patience: number
  /** Called with each new connection before it is used. One that rejects closes it. */
  opened?(client: Client): Promise<void>
  notified?(channel: string, payload: string): void
}

/**
 * Keeps one connection of our own, made and renewed in the background. It queues nothing while there is none, and neither the
 * connection nor the waiting for one keeps the process alive, but for what is held.
 */
export class Session {
  readonly #options: SessionOptions
  #client: Client | undefined
  /** Connected, and `opened` is through. */
  #ready = false
  #retry: TimerHandle | undefined
  #closed = false
  #held = 0
  readonly #first: Promise<void>
  #firstDone = false
  /** Monotonic times at which queries without an answer were sent. */
  #pending: { readonly since: number }[] = []
  /** Settles with the query that was sent last. */
  #last: Promise<void> = Promise.resolve()
  /** Why there is no connection, as far as is known. */
  lastError: unknown

  constructor(options: SessionOptions) {
    this.#options = options
    this.#first = this.#attempt().then(() => {
      this.#firstDone = true
    })
  }

  get ready(): boolean {
    return this.#ready
  }

  /** Waits for the first attempt to connect; later ones nobody waits for. */
  async connected(): Promise<boolean> {
    if (!this.#ready && !this.#firstDone) await this.#first
    return this.#ready
  }

  /** One statement, in one round trip. The rows hold texts. @throws (rejects) what pg throws, or WEIR_STORE_TIMEOUT at once while the server is silent */
  query(text: string, values: unknown[]): Promise<readonly unknown[]> {
    return this.#inTurn(async (client) => (await client.query({ text, values, types: TEXTS })).rows)
  }

  /** Several statements as one transaction. */
  async script(text: string): Promise<void> {
    await this.#inTurn((client) => client.query(text))
  }

  /** One after the other, as pg itself no longer queues. */
  async #inTurn<T>(run: (client: Client) => Promise<T>): Promise<T> {
    const client = this.#ready ? this.#client : undefined
    if (client === undefined) throw this.#away()
    const one = { since: this.#options.clock.monotonic() }
    this.#rejectWhenSilent(one.since)
    this.#pending.push(one)
    const before = this.#last
    let done = (): void => {}
    this.#last = new Promise((resolve) => {
      done = resolve
    })
    try {
      await before
      if (this.#client !== client) throw this.#away()
      return await run(client)
    } finally {
      done()
      const place = this.#pending.indexOf(one)
      if (place >= 0) this.#pending.splice(place, 1)
    }
  }

  #away(): unknown {
    return this.lastError ?? new Error('not connected')
  }

  /** The process may not end before `release`. */
  hold(): void {
    if (this.#held++ === 0) this.#client?.ref?.()
  }

  release(): void {
    if (--this.#held === 0) this.#client?.unref?.()
  }

  close(): void {
    this.#closed = true
    if (this.#retry !== undefined) this.#options.clock.clearTimeout(this.#retry)
    this.#retry = undefined
    const client = this.#client
    const idle = this.#ready && this.#pending.length === 0
    this.#forget()
    if (client === undefined) return
    if (idle) client.end().catch(() => {})
    else drop(client)
  }

  /**
   * While one query waits beyond its storeTimeout, no others join it: the server hangs, and they would pile up before it. When it answers
   * at last, all goes on; when it never does, there is a new connection in time.
   */
  #rejectWhenSilent(now: number): void {
    const { patience } = this.#options
    const [oldest] = this.#pending
    if (oldest === undefined || now - oldest.since <= patience) return
    if (now - oldest.since > LONG * patience) this.#renew()
    throw timedOut(patience)
  }

  #renew(): void {
    const client = this.#client
    this.#forget()
    if (client !== undefined) drop(client)
    this.#retryLater(0)
  }

  #forget(): void {
    this.#client = undefined
    this.#ready = false
    this.#pending = []
  }

  async #attempt(): Promise<void> {
    const { template, clock, patience, opened, notified } = this.#options
    let client: Client
    try {
      client = template.client()
    } catch (error) {
      this.lastError = error
      this.#retryLater(RETRY_AFTER)
      return
    }
    this.#client = client
    const over = (error?: unknown): void => {
      // The reason for our own end of the connection is more useful than the error that follows.
      if (this.#client !== client) return
      if (error instanceof Error) this.lastError = error
      this.#forget()
      drop(client)
      this.#retryLater(RETRY_AFTER)
    }
    client.on('error', over)
    client.on('end', over)
    client.on('notification', ({ channel, payload }: { readonly channel: string; readonly payload?: string }) =>
      notified?.(channel, payload ?? ''),
    )
    const watchdog = clock.setTimeout(() => over(new Error(`No connection within ${2 * patience} ms.`)), 2 * patience)
    try {
      const connecting = client.connect()
      if (this.#held === 0) client.unref?.()
      await connecting
      // TLS has put another socket in place of the first one.
      if (this.#held === 0) client.unref?.()
      await opened?.(client)
      if (this.#client === client) this.#ready = true
    } catch (error) {
      over(error)
    } finally {
      clock.clearTimeout(watchdog)
    }
    if (this.#closed) {
      this.#forget()
      drop(client)
    }
  }

  #retryLater(delay: number): void {
    if (this.#closed || this.#retry !== undefined) return
    this.#retry = this.#options.clock.setTimeout(() => {
      this.#retry = undefined
      if (this.#client === undefined && !this.#closed) void this.#attempt()
    }, delay)
  }
}

/** Without a word to the server, which may hang. */
function drop(client: Client): void {
  client.connection?.stream?.destroy()
}

export function timedOut(timeout: number): WeirError {
  return new WeirError(
    'WEIR_STORE_TIMEOUT',
    `PostgreSQL did not answer within ${timeout} ms. Check its load and the network, or raise "timeout" of the store.`,
  )
}
