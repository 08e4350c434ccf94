import type { Clock } from '@weir/core'
import { Account, auditOf, decideFor, Hub, isNodeId, readRequest } from '@weir/core/hub'
import { type Announcement, type AuditLog, LONGEST_AUDITED, MOST_AUDITED, type SyncReply } from '@weir/core/sync'
import { KeptRows } from './kept-rows.ts'
import { DurableObject, type ObjectState } from './platform.ts'

/** Bytes for counts, blocks and leases: about 100,000 keys. An isolate of Workers has 128 MB. */
const MOST_BYTES = 64 * 2 ** 20
/** The most live processes. Each isolate of a Worker is one. */
const MOST_NODES = 4_096
/** Announcements that are kept for processes that haven't received them. */
const MOST_NEWS = 1_000

/** An announcement with its number. Numbers grow. */
interface News {
  readonly number: number
  readonly announcement: Announcement
}

/** The reply to a sync: the announcements of other processes since the last one come with it, because an object can't call Workers. */
export interface HubReply {
  readonly reply: SyncReply
  readonly news: readonly News[]
  /** The number of the last announcement. The next sync contains it. */
  readonly seen: number
}

/**
 * The Durable Object behind `durableObjectStore`. Export it from the main module of your Worker and bind it in `wrangler.jsonc`.
 *
 * Counts are in memory. Blocks and leases are also in its storage, so they survive when the platform stops the object. Counts need not: each
 * process sends its own again. Every message is checked. Its methods are called by `durableObjectStore` only.
 *
 * @example
 * export { WeirHub } from '@weir/workers'
 */
export class WeirHub extends DurableObject {
  /** The mark by which the types of Workers know classes of Durable Objects. */
  declare readonly __DURABLE_OBJECT_BRAND: never
  readonly #account: Account = new Account(MOST_BYTES)
  readonly #rows: KeptRows
  readonly #hub: Hub
  readonly #log: AuditLog
  #news: (News & { readonly node: string | undefined })[] = []
  #last: number
  #node: string | undefined

  constructor(state: ObjectState, env: unknown) {
    super(state, env)
    const clock = objectClock()
    // Larger than in each former life: an object announces less than one change in a microsecond.
    this.#last = clock.now() * 1_000
    this.#rows = new KeptRows(state.storage)
    this.#hub = new Hub(clock, (name, read) => this.#rows.changed(name, read), this.#last)
    this.#log = auditOf(this.#hub)
    this.#hub.listen((announcement) => {
      this.#news.push({ number: ++this.#last, node: this.#node, announcement })
      if (this.#news.length > 2 * MOST_NEWS) this.#news = this.#news.slice(-MOST_NEWS)
    })
    void state.blockConcurrencyWhile(() => this.#rows.restore((row) => this.#hub.restore(row, this.#account)))
  }

  /**
   * @internal
   * @returns undefined if the request can't be read
   */
  async sync(node: unknown, packed: unknown, seen: unknown): Promise<HubReply | undefined> {
    if (!isNodeId(node) || this.#hub.isFull(node, MOST_NODES)) return undefined
    const checked = readRequest(packed, this.#hub.clock.now())
    if (checked === undefined) return undefined
    this.#node = node
    const reply = checked.complete(this.#hub.exchange(node, checked.request, this.#account))
    await this.#rows.write()
    return { reply, news: typeof seen === 'number' ? this.#newsFor(node, seen) : [], seen: this.#last }
  }

  /**
   * @internal
   * @returns undefined if the request can't be read, or there is no memory left for its keys
   */
  async decide(node: unknown, packed: unknown): Promise<readonly (readonly unknown[])[] | undefined> {
    return isNodeId(node) ? decideFor(this.#hub, node, packed, this.#account, this.#hub.clock.now()) : undefined
  }

  /**
   * Adds an entry to the log of manual actions, if there is one, and returns the newest ones.
   *
   * @internal
   */
  async audit(entry: unknown, most: unknown): Promise<readonly string[] | undefined> {
    if (typeof entry === 'string' && entry.length <= LONGEST_AUDITED) await this.#log.add(entry)
    await this.#rows.write()
    return typeof most === 'number' ? await this.#log.list(Math.min(most, MOST_AUDITED)) : undefined
  }

  /**
   * Removes a process from the live ones.
   *
   * @internal
   */
  async leave(node: unknown): Promise<void> {
    if (isNodeId(node)) this.#hub.leave(node)
  }

  #newsFor(node: string, seen: number): readonly News[] {
    let first = this.#news.length
    // A number of the future is from a former life, before the clock was set back.
    const from = seen > this.#last ? 0 : seen
    while (first > 0 && (this.#news[first - 1]?.number ?? 0) > from) first--
    return this.#news.slice(first).flatMap((one) => (one.node === node ? [] : [{ number: one.number, announcement: one.announcement }]))
  }
}

/**
 * The clock of an object. Its monotonic time is the wall clock's, so that stored times keep their meaning. The clock of its Worker must not
 * be read here: it would run the timers of throttlers, which belong to requests of the Worker.
 */
function objectClock(): Clock {
  let last = 0
  return {
    now: () => Date.now(),
    monotonic: () => (last = Math.max(last, Date.now())),
    setTimeout: (run, delay) => setTimeout(run, delay),
    clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
    // The only listener doesn't call the hub.
    defer: (run) => run(),
  }
}
