import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { WeirError } from '@weir/core'
import type { BlockChange, HeartbeatReply, HeartbeatRequest, MeetingPoint, Store, StoreConnection, StorePolicy } from '@weir/core/sync'
import { backgroundStore, lastCellOf, ordinalAt, type SyncEntry, type SyncReply, type SyncRequest, type SyncResult } from '@weir/core/sync'
import { type Counts, count, levelAt, newCounts, totals, without } from './counts.ts'

/** A store in a file, for the processes of one machine. It sends no announcements, so limits are less accurate than with other stores. */
export function sqliteStore(file: string): Store {
  return backgroundStore({ kind: 'sqlite', address: file, open: (node) => new Connection(file, node) })
}

/** The values of a key without a block. `epoch` is the key's last reset. Until `epochUntil`, some processes may not know of it. */
const NO_BLOCK = { end: 0, keep: 0, manual: false, epoch: 0, epochUntil: 0, offences: 0, offencesUntil: 0 }

class Connection implements StoreConnection {
  readonly #database: DatabaseSync
  readonly #node: Parameters<MeetingPoint['open']>[0]
  #closed = false

  constructor(file: string, node: Parameters<MeetingPoint['open']>[0]) {
    this.#node = node
    this.#database = new DatabaseSync(file)
    // A process that finds the file locked waits for up to half a second. This blocks its event loop, so syncs must be short.
    this.#database.exec(`PRAGMA busy_timeout = 500; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
      CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT, until REAL, version INTEGER);
      CREATE INDEX IF NOT EXISTS by_end ON kept (until); CREATE INDEX IF NOT EXISTS by_version ON kept (version)`)
  }

  async sync(request: SyncRequest): Promise<SyncReply> {
    if (this.#closed) throw new WeirError('WEIR_CLOSED', 'The connection to the store is closed.')
    const time = this.#node.clock.now()
    // After a step of the machine's clock, processes approach it slowly. Intervals and blocks end by their time.
    const now = request.time ?? time
    try {
      // A transaction, so that a sync is applied as a whole, and one process at a time writes.
      this.#database.exec('BEGIN IMMEDIATE')
      try {
        this.#database.prepare('DELETE FROM kept WHERE until < ?').run(now)
        const blocks = request.blocks.map((change) => this.#change(change, now))
        const results = request.entries.map((entry) => this.#apply(entry, now))
        const heartbeat = request.heartbeat && this.#beat(request.heartbeat, now)
        this.#database.exec('COMMIT')
        return { time, results, blocks, ...(heartbeat && { heartbeat }) }
      } catch (error) {
        this.#database.exec('ROLLBACK')
        throw error
      }
    } catch (cause) {
      throw new WeirError('WEIR_STORE_UNAVAILABLE', `SQLite can't be used now: ${cause}`, { cause })
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#database.prepare('DELETE FROM kept WHERE name = ?').run(nameOf('node', '', this.#node.id))
    this.#database.close()
  }

  #read<T>(kind: string, policyId: string, key: string, none: T): T {
    const row = this.#database.prepare('SELECT value FROM kept WHERE name = ?').get(nameOf(kind, policyId, key))
    return row === undefined ? none : (JSON.parse(String(row['value'])) as T)
  }

  #write(kind: string, policyId: string, key: string, value: unknown, until: number, version = 0): void {
    const row = [nameOf(kind, policyId, key), JSON.stringify(value), Math.min(until, 1e15), version]
    this.#database.prepare('REPLACE INTO kept VALUES (?, ?, ?, ?)').run(...row)
  }

  #writeCounts(policy: StorePolicy, key: string, counts: Counts, now: number): void {
    const { id, width, ttl, drain } = policy
    const toRunOut = drain ? (levelAt(counts, ordinalAt(now, width), policy) / drain) * width : 0
    this.#write('counts', id, key, counts, now + ttl + toRunOut)
  }

  #apply(entry: SyncEntry, now: number): SyncResult {
    const { policy, key, cells, epoch: known = 0 } = entry
    // The process knows a reset that the store has lost.
    if (known > this.#epoch(policy, key, now)) this.#change({ policy, key, kind: 'reset', remaining: 0, epoch: known }, now)
    const epoch = this.#epoch(policy, key, now)
    const isBefore = epoch > known && !cells.some(({ ordinal }) => ordinal > lastCellOf(epoch, policy.width))
    const counts = this.#read('counts', policy.id, key, newCounts())
    if (!isBefore && count(counts, this.#node.id, entry, now)) this.#writeCounts(policy, key, counts, now)
    const { end, manual } = this.#read('block', policy.id, key, NO_BLOCK)
    const blocked = Math.max(0, end - now)
    return { cells: totals(counts, entry, now), blocked, ...(blocked > 0 && manual && { manual: true }), ...(isBefore && { epoch }) }
  }

  #epoch(policy: StorePolicy, key: string, now: number): number {
    const { epoch, epochUntil } = this.#read('block', policy.id, key, NO_BLOCK)
    return epochUntil > now ? epoch : 0
  }

  /** @returns milliseconds for which the key is blocked after the change */
  #change({ policy, key, kind, remaining, manual, growth, epoch = 0 }: BlockChange, now: number): number {
    const block = this.#read('block', policy.id, key, NO_BLOCK)
    const left = Math.max(0, block.end - now)
    // If a limit was exceeded, the first block applies, and a block from before a reset is ignored.
    if (kind === 'exceeded' && (left > 0 || epoch < this.#epoch(policy, key, now))) return left
    if ((kind === 'restore' && left >= remaining) || (kind === 'lift' && left === 0)) return left
    if (kind === 'reset' && epoch <= this.#epoch(policy, key, now)) return left
    const next = { ...block, end: now + remaining, manual: kind === 'set' || (kind === 'restore' && manual === true) }
    if (kind === 'exceeded' && growth !== undefined) {
      const offences = block.offencesUntil > now ? block.offences : 0
      next.end = now + Math.min(Math.max(remaining, growth.max), remaining * growth.factor ** offences)
      Object.assign(next, { offences: offences + 1, offencesUntil: next.end + growth.memory })
    } else if (kind === 'reset') {
      const counts = this.#read('counts', policy.id, key, newCounts())
      this.#writeCounts(policy, key, without(counts, lastCellOf(epoch, policy.width)), now)
      const epochUntil = now + 2 * policy.width * policy.cells + policy.ttl
      Object.assign(next, { end: block.manual ? block.end : now, manual: block.manual, epoch, epochUntil, offences: 0 })
    }
    // A lifted or shortened block is sent for as long as processes may still apply the longer one.
    next.keep = Math.max(next.end, next.epochUntil, block.keep)
    this.#write('block', policy.id, key, next, Math.max(next.keep, next.offencesUntil), this.#version() + 1)
    return Math.max(0, next.end - now)
  }

  #version(): number {
    return Number(this.#database.prepare('SELECT max(version) AS last FROM kept').get()?.['last'])
  }

  #beat({ ttl, cursor, policies }: HeartbeatRequest, now: number): HeartbeatReply {
    this.#write('node', '', this.#node.id, '', now + ttl)
    const nodes = Number(this.#database.prepare(`SELECT count(*) AS nodes FROM kept WHERE name LIKE '["node",%'`).get()?.['nodes'])
    // The generation is lost together with all other data. Its row has the newest version, so no number is used twice after blocks end.
    const generation = this.#read('generation', '', '', randomUUID() as string)
    const version = this.#version()
    this.#write('generation', '', '', generation, now + 1e12, version)
    const since = /^\d+$/.test(cursor ?? '') ? Number(cursor) : 0
    const changed = this.#database.prepare(`SELECT * FROM kept WHERE version > ? AND name LIKE '["block",%' ORDER BY version`).all(since)
    const blocks = changed.flatMap(({ name, value }) => {
      const [, policyId, key] = JSON.parse(String(name)) as [string, string, string]
      const { end, manual, epoch, epochUntil } = JSON.parse(String(value)) as typeof NO_BLOCK
      const remaining = Math.max(0, end - now)
      if (!policies.some(({ id }) => id === policyId) || (since === 0 && remaining === 0 && epochUntil <= now)) return []
      return [{ policyId, key, remaining, ...(remaining > 0 && manual && { manual: true as const }), ...(epochUntil > now && { epoch }) }]
    })
    return { nodes, generation, cursor: String(version), blocks, hot: [] }
  }
}

/** The name of a row. A JSON list, so that names never collide, even if a key contains separators. */
const nameOf = (kind: string, policyId: string, key: string): string => JSON.stringify([kind, policyId, key])
