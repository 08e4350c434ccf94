import {
  type Announcement,
  lastCellOf,
  type Ordinal,
  ordinalAt,
  type StorePolicy,
  type SyncEntry,
  type SyncResult,
  type TotalAnnouncement,
} from '@weir/core/sync'
import type { Expiry } from '../gateway/expiry.ts'
import type { Link } from '../gateway/link.ts'
import {
  get,
  LONGEST_TRANSACTION,
  MOST_OPERATIONS,
  type Operation,
  put,
  type RangeOperation,
  range,
  unchanged,
} from '../gateway/operations.ts'
import { allOf, PAGE } from '../gateway/pages.ts'
import type { Held, PartReply, TransactionReply } from '../gateway/replies.ts'
import { BASE, type Layout, nameOf } from '../keys/layout.ts'
import { blockChange, type Changed } from '../records/blocks.ts'
import type { Change, Records } from '../records/records.ts'
import { type Base, readBase, textOfBase } from './bucket.ts'
import { living, merged, NOTHING, type NodeCounts, textOf } from './node-counts.ts'
import { type Own, OwnCounts, UNANNOUNCED } from './own.ts'
import { Snapshot } from './snapshot.ts'
import { windowLife } from './window.ts'

/** Operations of a key write: one write and two reads. */
const OPERATIONS = 3
const READS = 2
/** The number of transactions that run at once. */
const AT_ONCE = 4
/** A key write is tried again if the process's counts in etcd differ from its own record of them, or if etcd had lost a reset. */
const MOST_TRIES = 4

/** The mark of a key near its limit. */
export interface Hot {
  readonly policy: StorePolicy
  /** The cells of `CellNews.hot`. */
  readonly cells: readonly number[]
  /** Milliseconds. */
  readonly life: number
}

/** The parts of the process that syncs of counts use. */
export interface CountsHost {
  readonly id: string
  readonly keys: Layout
  readonly link: Link
  readonly expiry: Expiry
  readonly records: Records
  /** Changes blocks and announces them to other processes. */
  changeBlocks(changes: readonly Change<Changed>[], results: (Changed | undefined)[]): Promise<void>
  announce(announcement: Announcement, hot?: Hot): void
  unreadable(name: string): void
}

/** The results of a sync, filled in as replies arrive. */
export interface Results {
  readonly results: (SyncResult | undefined)[]
  answered(): void
}

/** Syncs counts: a process writes its own counts, and reads those of all processes in the same transaction. */
export class Counts {
  readonly #host: CountsHost
  readonly #own = new OwnCounts()
  readonly #node: string
  /**
   * The most processes that a key of the last transaction had. A transaction reads only as many keys as fit in one page with so many counts
   * each.
   */
  #widest = 1

  constructor(host: CountsHost) {
    this.#host = host
    this.#node = nameOf(host.id)
  }

  /**
   * @param places indexes of the entries in the request
   * @param now the processes' common time
   * @throws if etcd is down. Entries that were answered before that have a result
   */
  async exchange(entries: readonly SyncEntry[], places: readonly number[], now: number, into: Results): Promise<void> {
    let open = places
    /** Keys whose reset this sync has sent to etcd. */
    const told = new Set<string>()
    for (let tried = 0; tried < MOST_TRIES && open.length > 0; tried++) {
      const again: number[] = []
      const chunks = await this.#chunksOf(entries, open, now)
      let failure: { readonly error: unknown } | undefined
      const work = async (): Promise<void> => {
        for (let chunk = chunks.shift(); chunk !== undefined && failure === undefined; chunk = chunks.shift()) {
          try {
            again.push(...(await this.#run(chunk, now, into, told)))
          } catch (error) {
            failure = { error }
          }
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, work))
      if (failure !== undefined) throw failure.error
      open = again
    }
  }

  /** Returns the totals of keys near their limits, for a process that starts. Keys that are no longer near their limits are left out. */
  async totals(hot: readonly HotKey[], now: number): Promise<TotalAnnouncement[]> {
    const parts = await this.#parts(hot, await this.#host.link.transact(this.#reads(hot)))
    return hot.flatMap((one, i) => this.#total(one, parts[i] as KeyParts, now) ?? [])
  }

  #total({ policy, key, cell }: HotKey, parts: KeyParts, now: number): TotalAnnouncement | undefined {
    const running = ordinalAt(now, policy.width)
    const isFixed = policy.cells === 1
    if (isFixed && cell < running) return undefined
    const snapshot = this.#snapshot(policy, key, parts, now)
    const ordinal = (isFixed ? cell : running) as Ordinal
    const cells = snapshot.cells([{ ordinal, taken: 0, given: 0 }], snapshot.own?.counts ?? NOTHING)
    const [first] = cells
    if (first === undefined || (isFixed && first.taken === 0) || (first.level !== undefined && first.level < policy.hot / 2))
      return undefined
    const epoch = concerning(snapshot.epoch, first.ordinal, policy)
    return { type: 'total', policyId: policy.id, key, cells, ...(epoch > 0 && { epoch }) }
  }

  /** The reads for `#parts`: the first pages of some keys, which together make one page. */
  #reads(keys: readonly KeyOf[]): readonly Operation[] {
    const limit = Math.ceil(PAGE / keys.length)
    return keys.flatMap(({ policy, key }) => [this.#all(policy, key, limit), get(this.#host.keys.block(policy, key))])
  }

  #all(policy: StorePolicy, key: string, limit: number): RangeOperation {
    return range(this.#host.keys.counts(policy, key), limit)
  }

  /** Returns the values of some keys in etcd, all at one revision. `#reads` must be the last operations of the transaction. */
  async #parts(keys: readonly KeyOf[], { parts, revision }: TransactionReply): Promise<readonly KeyParts[]> {
    const { link } = this.#host
    const from = parts.length - READS * keys.length
    const found = await Promise.all(
      keys.map(async ({ policy, key }, i) => {
        const [first, block] = parts.slice(from + READS * i) as [PartReply, PartReply]
        return { counts: await allOf(link, this.#all(policy, key, PAGE), first, revision), block: block.held[0] }
      }),
    )
    this.#widest = found.reduce((most, { counts }) => Math.max(most, counts.length), 1)
    return found
  }

  async #run(chunk: readonly Asked[], now: number, into: Results, told: Set<string>): Promise<number[]> {
    const { link, expiry, records } = this.#host
    const writing = chunk.filter(({ value }) => value !== undefined)
    const request = expiry.renewing(async () => {
      const writes = await Promise.all(writing.map((asked) => this.#write(asked)))
      const compare = writing.map(({ ownName, own }) => unchanged(ownName, own.revision))
      const reads = this.#reads(chunk.map(({ entry }) => entry))
      return link.transact([...writes, ...reads], compare, reads)
    })
    const reply = await request.catch((error: unknown) => {
      for (const { own } of writing) own.unsure = true
      throw error
    })
    const parts = await this.#parts(
      chunk.map(({ entry }) => entry),
      reply,
    )
    into.answered()
    const again: number[] = []
    const resets: Change<Changed>[] = []
    const bases: Change<void>[] = []
    for (const [i, asked] of chunk.entries()) {
      const { entry, place, own, next } = asked
      const snapshot = this.#snapshot(entry.policy, entry.key, parts[i] as KeyParts, now)
      const before = own.counts
      if (next !== undefined && reply.succeeded) {
        own.revision = reply.revision
        own.behind = false
        own.unsure = false
        own.counts = next
      } else if ((snapshot.own?.revision ?? 0) !== own.revision) {
        // etcd has lost the value, or an earlier write succeeded and its reply was lost.
        this.#learn(own, snapshot, entry.policy, now)
        again.push(place)
        continue
      } else if (next !== undefined) {
        // Another entry's counts in etcd differed, and a transaction writes all of its keys or none.
        again.push(place)
        continue
      }
      if ((entry.epoch ?? 0) > snapshot.epoch && !told.has(asked.ownName)) {
        told.add(asked.ownName)
        // Keeps the counts as they were before, so that the retry after the reset announces the new units.
        own.counts = before
        // The process has a reset that etcd has lost.
        const { policy, key, epoch = 0 } = entry
        resets.push(blockChange({ policy, key, kind: 'reset', remaining: 0, epoch }, this.#host.keys.block(policy, key), now))
        again.push(place)
        continue
      }
      into.results[place] = this.#answer(asked, snapshot)
      const base = this.#baseDue(entry, own, snapshot, before)
      if (base !== undefined) bases.push(base)
    }
    if (resets.length > 0) await this.#host.changeBlocks(resets, [])
    // If this fails, the next write makes the base again.
    if (bases.length > 0) await records.run(bases, []).catch(() => {})
    return again
  }

  #answer({ entry, own }: Asked, snapshot: Snapshot): SyncResult {
    const { policy, key } = entry
    const { link, announce } = this.#host
    const result = snapshot.result(entry, own.counts)
    const counted = entry.epoch ?? 0
    const epoch = concerning(snapshot.epoch, entry.cells[0]?.ordinal, policy)
    if (policy.drain !== undefined) own.life = snapshot.bucket(own.counts).life
    if (entry.ask) announce.call(this.#host, { type: 'ask', policyId: policy.id, key })
    if (epoch > counted) return { ...result, epoch }
    if (own.counts !== own.reported) {
      const news = snapshot.news(entry, own.reported, own, link.clock.monotonic())
      own.reported = own.counts
      const life = policy.drain === undefined ? 2 * policy.width * policy.cells : own.life
      if (news.announce) {
        const total = { type: 'total', policyId: policy.id, key, cells: result.cells, ...(counted > 0 && { epoch: counted }) } as const
        announce.call(this.#host, total, news.hot.length > 0 ? { policy, life, cells: news.hot } : undefined)
      }
    }
    return result
  }

  /** Returns the change of a bucket's base. Every process that writes to a bucket maintains the base. */
  #baseDue({ policy, key }: SyncEntry, own: Own, snapshot: Snapshot, before: NodeCounts): Change<void> | undefined {
    own.folded = snapshot.base?.ordinal ?? -1
    if (policy.drain === undefined || own.counts === before) return undefined
    const due = snapshot.bucket(own.counts).due(snapshot.base, snapshot.bucket(before).newest, [...before.cells.keys()].at(-1))
    if (due === undefined) return undefined
    const known = snapshot.base
    return {
      names: [this.#host.keys.counts(policy, key) + BASE],
      decide: ([text]) => {
        // Writes nothing if another process has changed the base, because cells that are added twice would count twice.
        const same = sameBase(text === undefined ? undefined : readBase(text), known)
        return { writes: [same ? { value: textOfBase(due.base), life: due.life } : undefined], result: undefined }
      },
    }
  }

  /** Takes over this process's own counts from etcd, which may be more or fewer than its record of them. */
  #learn(own: Own, { own: held, base }: Snapshot, policy: StorePolicy, now: number): void {
    const lost = (held?.revision ?? 0) < own.revision
    own.revision = held?.revision ?? 0
    own.folded = base?.ordinal ?? -1
    own.counts = living(own.counts, policy, now, own.folded)
    const { counts } = held ?? {}
    if (counts !== undefined) {
      const cells = Array.from(counts.cells, ([ordinal, units]) => ({ ordinal, ...units }))
      own.counts = merged(own.counts, { policy, key: '', cells, epoch: counts.epoch }, now, own.folded)
    }
    own.behind = own.counts.cells.size > 0 && (counts === undefined || textOf(counts) !== textOf(own.counts))
    if (lost) {
      // Together with the counts, etcd has lost the mark that the key is near its limit.
      own.reported = counts ?? NOTHING
      Object.assign(own, UNANNOUNCED)
    } else if (!own.unsure) {
      own.reported = own.counts
    }
    own.unsure = false
  }

  async #write({ ownName, value = '', life }: Asked): Promise<Operation> {
    return put(ownName, value, await this.#host.expiry.leaseFor(life))
  }

  #snapshot(policy: StorePolicy, key: string, { counts, block }: KeyParts, now: number): Snapshot {
    const { keys, unreadable } = this.#host
    const prefix = keys.counts(policy, key)
    return new Snapshot(policy, prefix, prefix + this.#node, counts, block, now, (name) => unreadable.call(this.#host, name))
  }

  #chunksOf(entries: readonly SyncEntry[], places: readonly number[], now: number): Asked[][] {
    const chunks: Asked[][] = []
    const names = new Set<string>()
    const most = Math.max(1, Math.min(Math.floor(MOST_OPERATIONS / OPERATIONS), Math.floor(PAGE / this.#widest)))
    let length = 0
    for (const place of places) {
      const asked = this.#ask(entries[place] as SyncEntry, place, now)
      const more = 2 * (asked.value?.length ?? 0) + 8 * asked.ownName.length
      const last = chunks.at(-1)
      const full = last === undefined || last.length >= most || length + more > LONGEST_TRANSACTION
      // A transaction must not write a key twice.
      if (full || names.has(asked.ownName)) {
        chunks.push([asked])
        length = more
        names.clear()
      } else {
        last.push(asked)
        length += more
      }
      names.add(asked.ownName)
    }
    return chunks
  }

  #ask(entry: SyncEntry, place: number, now: number): Asked {
    const { keys } = this.#host
    const { policy, key } = entry
    const prefix = keys.counts(policy, key)
    const own = this.#own.of(prefix)
    const next = merged(own.counts, entry, now, own.folded)
    const asked = { entry, place, own, ownName: prefix + this.#node }
    // Lost counts are written again, even if they are unchanged.
    if (next === own.counts && !own.behind) return { ...asked, next: undefined, value: undefined, life: 0 }
    const life = policy.drain === undefined ? windowLife(next, policy, now) : bucketLife(next, own, policy)
    return { ...asked, next, value: textOf(next), life }
  }
}

/** A key of a policy. */
type KeyOf = Pick<SyncEntry, 'policy' | 'key'>

/** A key that was marked as near its limit, with the cell from `CellNews.hot`. */
export interface HotKey extends KeyOf {
  readonly cell: number
}

/** The values of a key in etcd: counts of processes, and the block. */
interface KeyParts {
  readonly counts: readonly Held[]
  readonly block: Held | undefined
}

/** An entry in a transaction. */
interface Asked {
  readonly entry: SyncEntry
  readonly place: number
  readonly own: Own
  readonly ownName: string
  /** The process's counts after the write, undefined if the entry only reads. */
  readonly next: NodeCounts | undefined
  readonly value: string | undefined
  readonly life: number
}

/** Returns the last reset if it concerns the first cell, else 0. */
function concerning(epoch: number, first: Ordinal | undefined, { width }: StorePolicy): number {
  return epoch > 0 && (first === undefined || first <= lastCellOf(epoch, width)) ? epoch : 0
}

/**
 * The time until this process's units have drained, as if the bucket contained no others, plus the time for the level that etcd last
 * returned.
 */
function bucketLife({ cells, floor }: NodeCounts, own: Own, { width, drain = 0, cells: all, ttl }: StorePolicy): number {
  let units = floor?.level ?? 0
  for (const { taken, given } of cells.values()) units += taken - given
  return own.life + (drain > 0 ? (units / drain) * width : 0) + all * width + ttl
}

function sameBase(a: Base | undefined, b: Base | undefined): boolean {
  return a === undefined || b === undefined ? a === b : textOfBase(a) === textOfBase(b)
}
