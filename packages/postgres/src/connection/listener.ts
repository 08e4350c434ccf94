import { randomUUID } from 'node:crypto'
import type { Clock } from '@weir/core'
import { Session } from './session.ts'
import type { Client, Template } from './template.ts'

export interface ListenerOptions {
  readonly template: Template
  readonly clock: Clock
  /** Milliseconds. */
  readonly patience: number
  readonly channel: string
  /** Sends a notification over another connection. */
  notify(channel: string): Promise<unknown>
  heard(payload: string): void
  /** Nothing is heard here, and never will be. */
  deaf(reason: string): void
}

/** Notifications that are sent at the test whether they come through. */
const TRIES = 5

/**
 * Hears what is announced, over a connection of its own. A pooler that gives a server's connection away after each transaction
 * (pgbouncer in transaction mode) lets no notifications through; that is noticed, and then there is no listener.
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

  /** Whether a notification of another connection comes through. The name is used once: where it does not, a server's connection goes on listening to it in vain. */
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
      // The connection is gone; the next one is tested again.
      return
    } finally {
      this.#probes.delete(probe)
    }
    if (heard || this.#closed) return
    this.close()
    deaf('a pooler between this node and PostgreSQL gives connections away after each transaction')
  }
}

/** A pooler makes up the process that it names to clients. */
async function isPooled(client: Client): Promise<boolean> {
  const { rows } = await client.query({ text: 'SELECT pg_backend_pid() AS pid' })
  return Number((rows[0] as { readonly pid?: unknown } | undefined)?.pid) !== client.processID
}
