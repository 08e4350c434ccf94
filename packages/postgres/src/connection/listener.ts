import { randomUUID } from 'node:crypto'
import type { Clock } from '@weir/core'
import { Session } from './session.ts'
import type { Client, Template } from './template.ts'

export interface ListenerOptions {
  readonly template: Template
  readonly clock: Clock
  /** Milliseconds to wait for the server. */
  readonly patience: number
  readonly channel: string
  /** Sends a notification over another connection. */
  notify(channel: string): Promise<unknown>
  heard(payload: string): void
  /** Called if notifications can't arrive on this connection. */
  deaf(reason: string): void
}

/** Notifications that the test sends. */
const TRIES = 5

/**
 * Receives announcements on a separate connection. A pooler that returns the server's connection after each transaction (pgbouncer in
 * transaction mode) passes no notifications. The listener detects such a pooler, reports it and closes.
 */
export class Listener {
  readonly #options: ListenerOptions
  readonly #session: Session
  #closed = false

  constructor(options: ListenerOptions) {
    this.#options = options
    const { template, clock, patience, channel } = options
    this.#session = new Session({
      template,
      clock,
      patience,
      opened: async (client) => {
        const pooled = await isPooled(client)
        await client.query(`LISTEN "${channel}"`)
        if (pooled) void this.#test(client)
      },
      notified: (of, payload) => {
        if (of === channel && !this.#closed) options.heard(payload)
        else this.#probes.get(of)?.()
      },
    })
  }

  readonly #probes = new Map<string, () => void>()

  close(): void {
    this.#closed = true
    this.#session.close()
  }

  /**
   * Tests if a notification from another connection arrives. Each test uses a new name, because a server connection that a pooler keeps
   * would listen to an old one forever.
   */
  async #test(client: Client): Promise<void> {
    const { clock, patience, notify, deaf } = this.#options
    const probe = `weir-${randomUUID()}`
    let heard = false
    this.#probes.set(probe, () => {
      heard = true
    })
    try {
      await client.query(`LISTEN "${probe}"`)
      for (let sent = 0; sent < TRIES && !heard && !this.#closed; ) {
        const failed = await notify(probe).then(
          () => false,
          () => true,
        )
        if (!failed) sent++
        await new Promise<void>((resolve) => clock.setTimeout(resolve, patience / 2))
        // A failed send proves nothing about the pooler. The query fails if this connection is lost too.
        if (failed) await client.query(`LISTEN "${probe}"`)
      }
      if (heard || this.#closed) await client.query(`UNLISTEN "${probe}"`)
    } catch {
      // The connection is lost. The next one is tested again.
      return
    } finally {
      this.#probes.delete(probe)
    }
    if (heard || this.#closed) return
    this.close()
    deaf('a pooler between this process and PostgreSQL changes the connection after each transaction')
  }
}

/** Returns whether a pooler is in between. Poolers send clients a process id that is not the server's. */
async function isPooled(client: Client): Promise<boolean> {
  const { rows } = await client.query({ text: 'SELECT pg_backend_pid() AS pid' })
  return Number((rows[0] as { readonly pid?: unknown } | undefined)?.pid) !== client.processID
}
