import type { Ordinal, StoreConnection, StorePolicy, SyncEntry } from '@weir/core/sync'
import type { HubNamespace, ObjectState } from '../src/platform.ts'
import { WeirHub } from '../src/weir-hub.ts'

/** Durable Objects in this process: every call copies its values, and runs after the object's constructor has finished its reads. */
export class FakeObjects implements HubNamespace {
  readonly storages = new Map<string, Map<string, unknown>>()
  readonly #objects = new Map<string, { readonly hub: WeirHub; readonly ready: Promise<unknown> }>()
  /** The number of calls, and of rows written. */
  calls = 0
  written = 0
  down = new Set<string>()
  hanging = new Set<string>()

  idFromName(name: string): string {
    return name
  }

  get(id: never): unknown {
    const name = id as string
    return new Proxy(
      {},
      {
        get:
          (_, method) =>
          async (...values: unknown[]) => {
            await null
            if (this.down.has(name)) throw new Error('The object is down.')
            if (this.hanging.has(name)) await new Promise(() => {})
            this.calls++
            const { hub, ready } = this.#objectOf(name)
            await ready
            const run = Reflect.get(hub, method) as (...given: unknown[]) => Promise<unknown>
            return structuredClone(await run.apply(hub, structuredClone(values)))
          },
      },
    )
  }

  /** Ends all objects, as the platform does with idle ones. Storage stays. */
  evict(): void {
    this.#objects.clear()
  }

  rows(): unknown[] {
    return [...this.storages.values()].flatMap((storage) => [...storage.values()])
  }

  #objectOf(name: string): { readonly hub: WeirHub; readonly ready: Promise<unknown> } {
    let found = this.#objects.get(name)
    if (found === undefined) {
      const rows = this.storages.get(name) ?? new Map<string, unknown>()
      this.storages.set(name, rows)
      let ready: Promise<unknown> = Promise.resolve()
      const state: ObjectState = {
        blockConcurrencyWhile: (run) => {
          const done = run()
          ready = done
          return done
        },
        storage: {
          list: async ({ prefix, limit, startAfter = '' }) =>
            new Map(
              [...rows]
                .filter(([place]) => place.startsWith(prefix) && place > startAfter)
                .sort(([a], [b]) => (a < b ? -1 : 1))
                .slice(0, limit)
                .map(([place, row]) => [place, structuredClone(row)]),
            ),
          put: async (entries) => {
            if (Object.keys(entries).length > 128) throw new Error('One call writes 128 rows at most.')
            for (const [place, row] of Object.entries(entries)) rows.set(place, structuredClone(row))
            this.written += Object.keys(entries).length
          },
          delete: async (names) => {
            if (names.length > 128) throw new Error('One call deletes 128 rows at most.')
            for (const place of names) rows.delete(place)
            return names.length
          },
        },
      }
      const hub = new WeirHub(state, {})
      this.#objects.set(name, (found = { hub, ready }))
    }
    return found
  }
}

/** A connection that also fetches announcements every few milliseconds, because they come with replies. */
export function polling(connection: StoreConnection): StoreConnection {
  const policy: StorePolicy = { id: 'poll', width: 60_000, cells: 1, limit: 10, hot: 10, ttl: 120_000 }
  // Units of 0 write nothing. There are enough keys to reach every object.
  const entries = Array.from(
    { length: 20 },
    (_, i): SyncEntry => ({ policy, key: `${i}`, cells: [{ ordinal: 1 as Ordinal, taken: 0, given: 0 }] }),
  )
  const timer = setInterval(() => void connection.sync({ entries, blocks: [] }).catch(() => {}), 5)
  return {
    sync: (request) => connection.sync(request),
    ...(connection.decider && { decider: connection.decider.bind(connection) }),
    ...(connection.audit && { audit: connection.audit.bind(connection) }),
    close: () => {
      clearInterval(timer)
      return connection.close()
    },
  }
}
