import { type Clock, type TimerHandle, WeirError } from '@weir/core'
import { afterSilence, soon } from '@weir/core/sync'
import { codeOf } from './sql-state.ts'
import type { Client, Template } from './template.ts'

/** Milliseconds between attempts to connect, so that the return of a server is noticed well within a second. */
const RETRY_AFTER = 200

/** Attempts to replace a good connection at once. Calls wait for them, so they fail at once only afterwards. */
const MOST_REPLACING = 3

/** Milliseconds in which a process reads an answer that has arrived. */
const LATE = 50

/** How many times the patience a query may wait before its connection is replaced. */
const LONG = 3

/** The beginning of the codes of errors by which the server ends a connection. */
const ENDED = '57P'

/** Returns every value as the text that the server sent, even if the application has set parsers for its own queries. */
const TEXTS = { getTypeParser: () => (text: string) => text }

export interface SessionOptions {
  readonly template: Template
  readonly clock: Clock
  /** Milliseconds of silence after which other queries fail. An attempt to connect may take twice as long. */
  readonly patience: number
  /** Called with each new connection before it is used. If it rejects, the connection is closed. */
  opened?(client: Client): Promise<void>
  notified?(channel: string, payload: string): void
}

/** A query without an answer. */
interface Pending {
  readonly since: number
  /** False once its timeout was noticed, true a moment later: a process that was busy or frozen may not have read the answer yet. */
  late?: boolean
}

/**
 * Keeps one connection of the store's own, which is opened and replaced in the background. Without a connection, queries fail immediately.
 * Neither the connection nor an attempt to connect keeps the process alive, except between `hold` and `release`.
 */
export class Session {
  readonly #options: SessionOptions
  #client: Client | undefined
  /** Connected, and `opened` has resolved. */
  #ready = false
  #retry: TimerHandle | undefined
  #closed = false
  #held = 0
  readonly #first: Promise<void>
  #firstDone = false
  #readyAt = 0
  /** Resolves once the connection that replaces a lost one is ready, or can't be opened. It never rejects. */
  #replacement: Promise<void> | undefined
  /** The last attempt waited for a silent server. */
  #hung = false
  /** The times at which unanswered queries were sent, on the monotonic clock. */
  #pending: Pending[] = []
  /** Resolves with the end of the last query. */
  #last: Promise<void> = Promise.resolve()
  /** The reason why there is no connection, if one is known. */
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

  /** Waits for the first attempt to connect, and for the replacement of a lost connection. Later attempts run in the background. */
  async connected(): Promise<boolean> {
    // Each caller waits for a moment, because the process may be frozen again before the connection is ready.
    if (!this.#ready) await (this.#firstDone ? this.#replacement && soon(this.#options.clock, this.#replacement) : this.#first)
    return this.#ready
  }

  /** Waits after a failed query. Returns whether it can be sent again: its connection was lost, and replaced soon. */
  async replaced(): Promise<boolean> {
    return !this.#ready && (await this.connected())
  }

  /**
   * Runs one statement in one round trip. The rows contain texts. @throws (rejects) the errors of pg, or WEIR_STORE_TIMEOUT immediately
   * while the server is silent
   */
  query(text: string, values: unknown[]): Promise<readonly unknown[]> {
    return this.#inTurn(async (client) => (await client.query({ text, values, types: TEXTS })).rows)
  }

  /** Runs several statements as one transaction. */
  async script(text: string): Promise<void> {
    await this.#inTurn((client) => client.query(text))
  }

  /** Runs queries in order, because pg itself no longer queues them. */
  async #inTurn<T>(run: (client: Client) => Promise<T>): Promise<T> {
    const client = this.#ready ? this.#client : undefined
    if (client === undefined) throw this.#away()
    const one: Pending = { since: this.#options.clock.monotonic() }
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
    } catch (error) {
      // The server ends this connection. Its reason was the answer to this query.
      if (codeOf(error).startsWith(ENDED)) this.#lost(client, error)
      throw error
    } finally {
      done()
      const place = this.#pending.indexOf(one)
      if (place >= 0) this.#pending.splice(place, 1)
    }
  }

  #away(): unknown {
    return this.lastError ?? new Error('not connected')
  }

  /** Keeps the process alive until `release`. */
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
   * Rejects further queries while the oldest one waits beyond the timeout, because they would pile up at a server that hangs. After three
   * times the timeout the connection is replaced.
   */
  #rejectWhenSilent(now: number): void {
    const { clock, patience } = this.#options
    const [oldest] = this.#pending
    if (oldest === undefined || now - oldest.since <= patience) return
    if (oldest.late === undefined) {
      oldest.late = false
      afterSilence(clock, LATE, () => {
        oldest.late = true
      })
    }
    if (!oldest.late) return
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
    this.#hung = false
    const over = (error?: unknown): void => this.#lost(client, error)
    client.on('error', over)
    client.on('end', over)
    client.on('notification', ({ channel, payload }: { readonly channel: string; readonly payload?: string }) =>
      notified?.(channel, payload ?? ''),
    )
    const answered = afterSilence(clock, 2 * patience, () => {
      this.#hung = true
      over(new Error(`No connection within ${2 * patience} ms.`))
    })
    try {
      const connecting = client.connect()
      if (this.#held === 0) client.unref?.()
      await connecting
      // TLS replaces the first socket by another one.
      if (this.#held === 0) client.unref?.()
      await opened?.(client)
      if (this.#client === client) {
        this.#ready = true
        this.#readyAt = clock.monotonic()
      }
    } catch (error) {
      over(error)
    } finally {
      answered()
    }
    if (this.#closed) {
      this.#forget()
      drop(client)
    }
  }

  #lost(client: Client, error?: unknown): void {
    // The reason for our own end of the connection is more useful than the error that follows.
    if (this.#client !== client) return
    if (error instanceof Error) this.lastError = error
    const wasGood = this.#ready && this.#options.clock.monotonic() - this.#readyAt >= RETRY_AFTER
    this.#forget()
    drop(client)
    if (wasGood && !this.#closed) this.#replacement = this.#replace()
    else this.#retryLater(RETRY_AFTER)
  }

  /**
   * Replaces a good connection at once, because it may have died while the process was frozen, or because it was idle. The next attempt may
   * end like that, too. But if it fails soon, in silence, or several times, the server is down.
   */
  async #replace(): Promise<void> {
    // Makes `#retryLater` wait for the end of these attempts.
    await undefined
    let begun = Number.NEGATIVE_INFINITY
    for (let left = MOST_REPLACING; left > 0 && !this.#ready && !this.#closed; left--) {
      const now = this.#options.clock.monotonic()
      if (now - begun < RETRY_AFTER || this.#hung) break
      begun = now
      await this.#attempt()
    }
    this.#replacement = undefined
    if (!this.#ready) this.#retryLater(RETRY_AFTER)
  }

  #retryLater(delay: number): void {
    if (this.#closed || this.#replacement !== undefined || this.#retry !== undefined) return
    this.#retry = this.#options.clock.setTimeout(() => {
      this.#retry = undefined
      if (this.#client === undefined && !this.#closed) void this.#attempt()
    }, delay)
  }
}

/** Closes the socket without a message to the server, which may hang. */
function drop(client: Client): void {
  client.connection?.stream?.destroy()
}

export function timedOut(timeout: number): WeirError {
  return new WeirError(
    'WEIR_STORE_TIMEOUT',
    `PostgreSQL did not answer within ${timeout} ms. Check its load and the network, or raise "timeout" of the store.`,
  )
}
