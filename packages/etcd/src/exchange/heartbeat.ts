import type {
  BlockState,
  HeartbeatReply,
  HeartbeatRequest,
  LeaseNotice,
  RulesReport,
  StatusReport,
  StorePolicy,
  TotalAnnouncement,
} from '@weir/core/sync'
import type { Counts, HotKey } from '../counts/counts.ts'
import type { Expiry } from '../gateway/expiry.ts'
import type { Link } from '../gateway/link.ts'
import { changedAfter, get, newest, type Operation, pageFrom, put, type RangeOperation, range, remove } from '../gateway/operations.ts'
import { PAGE, pagesOf } from '../gateway/pages.ts'
import { type Held, type PartReply, partOf } from '../gateway/replies.ts'
import type { Layout } from '../keys/layout.ts'
import { readBlock, stateOf } from '../records/blocks.ts'

/**
 * The least time for which a process's own entry stays, in milliseconds. Entries that end later share more leases, and each lease costs etcd
 * a write. Their value contains the time until which the process counts as live.
 */
const REMEMBERED = 60_000
/** How long processes report their statuses after one of them watched, in milliseconds. */
const WATCHED_FOR = 10_000
const RULES_KEPT = 60_000
const MOST_RULES = 64
/** Processes whose common time differs from the server's clock by more than this report the difference, in milliseconds. */
const STEPPED = 1_000
/** The most keys near their limits for a process that starts, the most news of leases, and the most statuses. */
const MOST_HOT = 1_000
const MOST_NEWS = 5_000
const MOST_STATUSES = 4_096
/** Keys of each range in a heartbeat's first transaction. All four ranges together make one page. */
const SHARE = PAGE / 4
const HOT_AT_ONCE = 40

export interface HeartbeatHost {
  readonly id: string
  readonly keys: Layout
  readonly link: Link
  readonly expiry: Expiry
  readonly counts: Counts
  unreadable(name: string): void
  /** Called if etcd has lost data: records of its contents are no longer valid. */
  lost(): void
}

/** The heartbeat of a process: once a second it reports its status and reads that of the others. */
export class Heartbeat {
  readonly #host: HeartbeatHost
  /** The revision that last wrote this process's entry, 0 for none. */
  #written = 0
  #losses = 0
  /** When this process's entry expires, on the monotonic clock. */
  #expiresAt = Number.NEGATIVE_INFINITY

  constructor(host: HeartbeatHost) {
    this.#host = host
  }

  /**
   * @param now the processes' common time
   * @param ahead how far `now` is ahead of the server's clock, undefined if the process doesn't know
   * @param life milliseconds for which etcd must remember this process
   */
  async beat(request: HeartbeatRequest, now: number, ahead: number | undefined, life: number): Promise<HeartbeatReply> {
    const { keys, link, expiry, id } = this.#host
    const written = this.#written
    const kept = Math.max(life, REMEMBERED)
    const sent = link.clock.monotonic()
    let newest = 0
    const cursor = revisionOf(request.cursor)
    const operations = await expiry.renewing(async () => {
      const list = await this.#operations(request, cursor, now, ahead, kept)
      const all = list.map(({ operation }) => operation)
      // Blocks are read only if one has changed.
      const compare = cursor === undefined ? [] : [changedAfter(keys.blocksChanged, cursor)]
      const others = all.filter((_, i) => list[i]?.what !== 'blocks')
      newest = link.newest
      return { list, reply: await link.transact(all, compare, others) }
    })
    const { reply } = operations
    const list = reply.succeeded ? operations.list : operations.list.filter(({ what }) => what !== 'blocks')
    const part = (what: What): PartReply | undefined => {
      const place = list.findIndex((one) => one.what === what)
      return place < 0 ? undefined : partOf(reply, place)
    }
    const before = part('own')?.held[0]?.revision ?? 0
    // The entry is missing too early or older than the last write, or etcd itself has an older revision than before.
    const lost = (before < written && sent < this.#expiresAt) || reply.revision < newest
    this.#expiresAt = sent + kept
    this.#written = lost ? reply.revision : Math.max(written, reply.revision)
    if (lost) {
      this.#losses++
      link.newest = reply.revision
      this.#host.lost()
    }

    const { revision } = reply
    const pages = (what: What): AsyncGenerator<readonly Held[]> => {
      const place = list.findIndex((one) => one.what === what)
      return pagesOf(link, list[place]?.operation as RangeOperation, place < 0 ? undefined : partOf(reply, place), revision)
    }
    const live = new Set<string>()
    let latest: Node | undefined
    for await (const held of pages('nodes')) {
      for (const node of held.map(readNode)) {
        if (node.until <= now) continue
        live.add(partOfName(node.name))
        if (node.name === keys.node(id) || node.ahead === undefined) continue
        if (latest === undefined || node.revision > latest.revision) latest = node
      }
    }
    const ids = new Map(request.policies.map((policy) => [policy.id, policy]))
    // After a loss revisions may start again, which makes the cursor invalid. So the reply contains all blocks.
    const anew = lost && cursor !== undefined
    const blocks = await this.#blocks(anew ? this.#allBlocks(revision) : pages('blocks'), anew ? undefined : cursor, ids, now)
    const rules = request.rules === undefined ? undefined : this.#rules(request.rules, part('rules')?.held ?? [])
    const watched = readUntil(part('watched')?.held[0]) > now
    return {
      nodes: Math.max(1, live.size),
      generation: String(this.#losses),
      cursor: String(revision),
      blocks,
      hot: request.cursor === undefined ? await this.#hot(part('hot')?.held ?? [], ids, now) : [],
      watched,
      ...(latest?.ahead !== undefined && latest.ahead !== 0 && { ahead: latest.ahead }),
      ...(request.leases && { leases: newsOf(await upTo(MOST_NEWS, pages('news')), ids) }),
      ...(request.watch && { statuses: statusesOf(await upTo(MOST_STATUSES, pages('statuses')), live, now) }),
      ...(rules !== undefined && { rules }),
    }
  }

  /** Removes the process from the list of live ones. */
  async leave(): Promise<void> {
    const { keys, link, id } = this.#host
    await link.transact([remove(keys.node(id)), remove(keys.status(id)), remove(keys.announced(id))])
  }

  async #operations(
    request: HeartbeatRequest,
    cursor: number | undefined,
    now: number,
    ahead: number | undefined,
    kept: number,
  ): Promise<{ readonly what: What; readonly operation: Operation }[]> {
    const { keys, expiry, id } = this.#host
    const { ttl, status, watch, leases, rules } = request
    const list: { readonly what: What; readonly operation: Operation }[] = []
    const add = (what: What, operation: Operation): void => void list.push({ what, operation })
    const write = async (name: string, value: unknown, life: number): Promise<void> => {
      add('written', put(name, JSON.stringify(value), await expiry.leaseFor(life)))
    }
    const off = ahead === undefined ? [] : [Math.abs(ahead) > STEPPED ? ahead : 0]
    add('own', get(keys.node(id)))
    await write(keys.node(id), [now + ttl, ...off], kept)
    add('nodes', range(keys.nodes, SHARE))
    add('blocks', range(keys.blocks, SHARE, cursor))
    if (request.cursor === undefined) add('hot', range(keys.allHot, MOST_HOT))
    if (leases) add('news', range(keys.allNews, SHARE))
    if (status !== undefined) await write(keys.status(id), [id, now, status], Math.max(ttl, WATCHED_FOR))
    if (watch) await write(keys.watched, [now + WATCHED_FOR], WATCHED_FOR)
    add('watched', get(keys.watched))
    if (watch) add('statuses', range(keys.statuses, SHARE))
    if (rules !== undefined) {
      await write(keys.rules(rules), [id, rules], RULES_KEPT)
      add('rules', newest(keys.allRules, 2 * MOST_RULES))
    }
    return list
  }

  async #blocks(
    pages: AsyncIterable<readonly Held[]>,
    cursor: number | undefined,
    policies: ReadonlyMap<string, StorePolicy>,
    now: number,
  ): Promise<BlockState[]> {
    const states: BlockState[] = []
    for await (const held of pages) {
      for (const { name, value } of held) {
        const block = readBlock(value)
        if (block === undefined) this.#host.unreadable(name)
        if (block === undefined || !policies.has(block.policyId)) continue
        const state = stateOf(block, now)
        if (cursor === undefined && state.remaining === 0 && state.epoch === undefined) continue
        states.push(state)
      }
    }
    return states
  }

  async *#allBlocks(revision: number): AsyncGenerator<readonly Held[]> {
    const { keys, link } = this.#host
    const operation = range(keys.blocks, PAGE)
    yield* pagesOf(link, operation, partOf(await link.transact([pageFrom(operation, undefined, PAGE, revision)]), 0), revision)
  }

  async #hot(held: readonly Held[], policies: ReadonlyMap<string, StorePolicy>, now: number): Promise<TotalAnnouncement[]> {
    const keys = held.flatMap(({ value }): HotKey[] => {
      const [policyId, key, cell] = listOf(value)
      const policy = typeof policyId === 'string' ? policies.get(policyId) : undefined
      return policy !== undefined && typeof key === 'string' && Number.isSafeInteger(cell) ? [{ policy, key, cell: cell as number }] : []
    })
    const totals: TotalAnnouncement[] = []
    for (let from = 0; from < keys.length; from += HOT_AT_ONCE) {
      totals.push(...(await this.#host.counts.totals(keys.slice(from, from + HOT_AT_ONCE), now)))
    }
    return totals
  }

  /** The newest rules that other processes report, up to a bound. */
  #rules(own: string, held: readonly Held[]): RulesReport[] {
    const { keys, link } = this.#host
    const ownName = keys.rules(own)
    const excess = held.slice(MOST_RULES)
    if (excess.length > 0) link.transact(excess.map(({ name }) => remove(name))).catch(() => {})
    return held.slice(0, MOST_RULES).flatMap(({ name, value }) => {
      const [node, rules] = listOf(value)
      return name !== ownName && typeof node === 'string' && typeof rules === 'string' ? [{ node, rules }] : []
    })
  }
}

type What = 'own' | 'written' | 'nodes' | 'blocks' | 'hot' | 'news' | 'watched' | 'statuses' | 'rules'

interface Node {
  readonly name: string
  readonly revision: number
  /** The time until which the process counts as live, by the processes' common time. */
  readonly until: number
  readonly ahead: number | undefined
}

function readNode({ name, revision, value }: Held): Node {
  const [until, ahead] = listOf(value)
  return { name, revision, until: typeof until === 'number' ? until : 0, ahead: typeof ahead === 'number' ? ahead : undefined }
}

function readUntil(held: Held | undefined): number {
  const [until] = held === undefined ? [] : listOf(held.value)
  return typeof until === 'number' ? until : 0
}

/** The last part of a name, which identifies a process. */
function partOfName(name: string): string {
  return name.slice(name.lastIndexOf('/'))
}

async function upTo(most: number, pages: AsyncIterable<readonly Held[]>): Promise<readonly Held[]> {
  const all: Held[] = []
  for await (const held of pages) {
    all.push(...held)
    if (all.length >= most) break
  }
  return all.slice(0, most)
}

function statusesOf(held: readonly Held[], live: ReadonlySet<string>, now: number): StatusReport[] {
  return held.flatMap(({ name, value }) => {
    const [node, at, status] = listOf(value)
    if (!live.has(partOfName(name))) return []
    if (typeof node !== 'string' || typeof at !== 'number' || typeof status !== 'string') return []
    return [{ node, status, age: Math.max(0, now - at) }]
  })
}

function newsOf(held: readonly Held[], policies: ReadonlyMap<string, StorePolicy>): LeaseNotice[] {
  return held.flatMap(({ value }) => {
    const [notice] = listOf(value) as readonly (LeaseNotice | undefined)[]
    return typeof notice === 'object' && notice !== null && policies.has(notice.policyId) ? [notice] : []
  })
}

function listOf(text: string): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) ? list : []
  } catch {
    return []
  }
}

/** Returns the revision of a cursor. An invalid cursor requests everything, like a missing one. */
function revisionOf(cursor: string | undefined): number | undefined {
  const revision = Number(cursor === undefined || cursor === '' ? Number.NaN : cursor)
  return Number.isSafeInteger(revision) && revision >= 0 ? revision : undefined
}
