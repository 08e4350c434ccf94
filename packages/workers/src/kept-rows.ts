import type { Hub, HubRow } from '@weir/core/hub'
import type { ObjectStorage } from './platform.ts'

/** The start of the names in storage. The number changes with the layout of rows. */
const PREFIX = 'weir/1/'
/** The most rows that storage reads or writes with one call. */
const MOST_READ = 1_000
const MOST_WRITTEN = 128

/** The rows of a hub in the storage of its object: blocks, leases and the log of manual actions. */
export class KeptRows {
  readonly #storage: ObjectStorage
  /** The numbers under which rows are stored, because names may be longer than storage allows. */
  readonly #places = new Map<string, string>()
  readonly #changed = new Map<string, () => HubRow | undefined>()
  #last = 0

  constructor(storage: ObjectStorage) {
    this.#storage = storage
  }

  changed(name: string, read: () => HubRow | undefined): void {
    this.#changed.set(name, read)
  }

  /** Passes the rows of the object's former life to the hub, and deletes expired ones. */
  async restore(take: Hub['restore']): Promise<void> {
    const expired: string[] = []
    let page: Map<string, unknown>
    let startAfter: { readonly startAfter?: string } = {}
    do {
      page = await this.#storage.list({ prefix: PREFIX, limit: MOST_READ, ...startAfter })
      for (const [place, row] of page) {
        const name = take(row)
        if (name === undefined) expired.push(place)
        else this.#places.set(name, place)
        this.#last = Math.max(this.#last, Number(place.slice(PREFIX.length)))
        startAfter = { startAfter: place }
      }
    } while (page.size === MOST_READ)
    await this.#write([], expired)
  }

  /** Writes the rows that changed since the last call, in one transaction. */
  async write(): Promise<void> {
    if (this.#changed.size === 0) return
    const rows: [string, HubRow][] = []
    const expired: string[] = []
    const changed = [...this.#changed]
    for (const [name, read] of changed) {
      const row = read()
      const place = this.#places.get(name) ?? `${PREFIX}${++this.#last}`
      if (row === undefined) {
        if (this.#places.delete(name)) expired.push(place)
      } else {
        this.#places.set(name, place)
        rows.push([place, row])
      }
    }
    this.#changed.clear()
    try {
      await this.#write(rows, expired)
    } catch (error) {
      // The next call writes them, unless they have changed again.
      for (const [name, read] of changed) if (!this.#changed.has(name)) this.#changed.set(name, read)
      throw error
    }
  }

  /** Calls without an `await` between them are one transaction. */
  async #write(rows: readonly [string, HubRow][], expired: readonly string[]): Promise<void> {
    const calls: Promise<unknown>[] = []
    for (let i = 0; i < rows.length; i += MOST_WRITTEN) calls.push(this.#storage.put(Object.fromEntries(rows.slice(i, i + MOST_WRITTEN))))
    for (let i = 0; i < expired.length; i += MOST_WRITTEN) calls.push(this.#storage.delete(expired.slice(i, i + MOST_WRITTEN)))
    await Promise.all(calls)
  }
}
