import type { WeirError } from '@weir/core'
import {
  type Announcement,
  type AuditLog,
  type BlockChange,
  boundedLog,
  closedPart,
  codeNotLoaded,
  type Decider,
  lifeOf,
  loadCode,
  SentLife,
  type StoreConnection,
  type StoreNode,
  type SyncReply,
  type SyncRequest,
  type SyncResult,
} from '@weir/core/sync'
import { Counts, type Hot } from '../counts/counts.ts'
import { Expiry } from '../gateway/expiry.ts'
import { asWeirError, isSetting, Link } from '../gateway/link.ts'
import { get } from '../gateway/operations.ts'
import type { CheckedOptions, CheckedTarget } from '../gateway/options.ts'
import type { Layout } from '../keys/layout.ts'
import { blockChange, type Changed } from '../records/blocks.ts'
import { type Granted, quotaChange } from '../records/quota.ts'
import { type Change, Records } from '../records/records.ts'
import { Announcer } from './announcer.ts'
import { Heartbeat } from './heartbeat.ts'
import { Listener } from './listener.ts'
import { Unreadable } from './unreadable.ts'

/** How long heartbeats see that blocks have changed, in milliseconds: longer than the time between two heartbeats of any process. */
const CHANGED_FOR = 3_600_000
/** The number of tries to write marks while the connection closes. */
const CLOSING_TRIES = 3

type Leases = typeof import('@weir/core/leases')

let leases: Leases | undefined

/** The connection of one process to etcd. */
export class EtcdConnection implements StoreConnection {
  readonly id: string
  readonly keys: Layout
  readonly link: Link
  readonly expiry: Expiry
  readonly records: Records
  readonly counts: Counts
  readonly #node: StoreNode
  readonly #announcer: Announcer
  readonly #listener: Listener
  readonly #heartbeat: Heartbeat
  readonly #unreadable: Unreadable
  readonly #sent = new SentLife()
  #closed = false
  /** Whether a warning about code that could not be loaded was sent. */
  #notLoaded = false
  /** A heartbeat may have written this process's entries, so `close` must remove them. */
  #known = false

  constructor(node: StoreNode, target: CheckedTarget, keys: Layout, { timeout }: CheckedOptions) {
    this.#node = node
    this.id = node.id
    this.keys = keys
    this.link = new Link(target, node.clock, timeout)
    this.expiry = new Expiry(this.link)
    this.records = new Records(this.link, this.expiry)
    this.#unreadable = new Unreadable(node.clock, (error) => node.warned?.(error))
    this.counts = new Counts(this)
    this.#heartbeat = new Heartbeat(this)
    this.#announcer = new Announcer(this.link, this.expiry, keys.announced(node.id))
    this.#listener = new Listener(this.link, keys.announcements, keys.announced(node.id), (one) => {
      if (!this.#closed) node.announced(one)
    })
    this.#listener.start()
  }

  async sync(request: SyncRequest): Promise<SyncReply> {
    if (this.#closed) throw closedPart('The connection to the store')
    const { clock } = this.#node
    const begun = clock.monotonic()
    const life = this.#sent.sent(begun, lifeOf(request))
    const { time } = request
    /** The processes' common time. */
    const now = (): number => (time === undefined ? this.link.time.now() : time + clock.monotonic() - begun)
    const results: (SyncResult | undefined)[] = request.entries.map(() => undefined)
    const changed: (Changed | undefined)[] = request.blocks.map(() => undefined)
    let answers = 0
    const answered = (): void => void answers++
    let heartbeat: SyncReply['heartbeat']
    try {
      if (request.blocks.length > 0) {
        const block = ({ policy, key }: BlockChange): string => this.keys.block(policy, key)
        const changes = request.blocks.map((change) => blockChange(change, block(change), now()))
        await this.changeBlocks(changes, changed)
        answered()
      }
      const places = [...request.entries.keys()]
      const asking = places.filter((place) => request.entries[place]?.lease !== undefined)
      const counting = places.filter((place) => request.entries[place]?.lease === undefined)
      const quota = asking.length > 0 ? await this.#leases() : undefined
      await Promise.all([
        ...(counting.length > 0 ? [this.counts.exchange(request.entries, counting, now(), { results, answered })] : []),
        ...(quota === undefined ? [] : [this.#ask(quota, request, asking, now(), results).then(answered)]),
      ])
      if (request.heartbeat !== undefined) {
        const written = this.#announcer.settled()
        // A process that starts receives the keys near their limits, so those of this sync must be written first.
        if (request.heartbeat.cursor === undefined) await written
        const ahead = time === undefined ? undefined : now() - this.link.time.now()
        heartbeat = await this.#heartbeat.beat(request.heartbeat, now(), ahead, life)
        this.#known = true
        answered()
      } else if (answers === 0) {
        // A sync with nothing to send, or without the code for its entries, still returns the server's time.
        await this.link.transact([get(this.keys.node(this.id))])
        answered()
      }
    } catch (error) {
      if (answers === 0 || this.#closed) throw this.#closed ? closedError() : this.#failed(error)
    }
    return {
      time: this.link.time.at((begun + clock.monotonic()) / 2),
      results,
      blocks: changed.map((one) => one?.remaining),
      ...(heartbeat && { heartbeat }),
    }
  }

  /** Warns about errors that last until a setting changes, such as a wrong password, because an application may not listen to events. */
  #failed(error: unknown): WeirError {
    const told = asWeirError(error)
    if (isSetting(told)) this.#node.warned?.(told)
    return told
  }

  async decider(): Promise<Decider> {
    const { EtcdDecider } = await import('../central/decider.ts')
    const { id, keys, records, link } = this
    const monotonic = (): number => link.clock.monotonic()
    const pause = async (milliseconds: number): Promise<void> => {
      // Keeps the process alive, because requests wait for this pause.
      const release = link.clock.hold?.()
      await new Promise<void>((resolve) => link.clock.setTimeout(() => resolve(), milliseconds))
      release?.()
    }
    return new EtcdDecider({ id, keys, records, timeout: link.timeout, monotonic, pause, now: () => link.time.now(), asWeirError })
  }

  async audit(): Promise<AuditLog> {
    const { auditAt } = await import('./audit.ts')
    return boundedLog(auditAt(this), this.link.clock, asWeirError)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#listener.close()
    await this.#announcer.settled(CLOSING_TRIES)
    // Removes this process's entries, so that others don't wait for them to expire. If that fails, they expire.
    if (this.#known) await this.#heartbeat.leave().catch(() => {})
    this.link.close()
  }

  /** Sends an announcement to other processes. If the key is near its limit, marks it for processes that start later. */
  announce(announcement: Announcement, hot?: Hot): void {
    const { policyId, key } = announcement
    const marks = hot?.cells.map((cell) => {
      const name = this.keys.hot(hot.policy, key, cell)
      return { name, value: JSON.stringify([policyId, key, cell]), life: hot.life }
    })
    this.#announcer.announce(announcement, marks)
  }

  async changeBlocks(changes: readonly Change<Changed>[], results: (Changed | undefined)[]): Promise<void> {
    try {
      await this.records.run(changes, results, [{ name: this.keys.blocksChanged, value: '', life: CHANGED_FOR }])
    } finally {
      for (const one of results) if (one?.news !== undefined) this.#announcer.announce({ type: 'block', ...one.news })
    }
  }

  unreadable(name: string): void {
    this.#unreadable.report(name)
  }

  lost(): void {
    this.records.forget()
    this.#listener.beginAnew()
  }

  /** Returns undefined if the code can't be loaded. Only the quota fails then, and the next sync requests it again. */
  async #leases(): Promise<Leases | undefined> {
    leases ??= await loadCode(() => import('@weir/core/leases')).catch((cause: unknown) => {
      if (!this.#notLoaded) this.#node.warned?.(codeNotLoaded('etcd', cause))
      this.#notLoaded = true
      return undefined
    })
    return leases
  }

  /** Requests quota ahead. */
  async #ask(
    quota: Leases,
    { entries }: SyncRequest,
    places: readonly number[],
    now: number,
    results: (SyncResult | undefined)[],
  ): Promise<void> {
    const asking = places.flatMap((place) => {
      const entry = entries[place]
      const ordinal = entry?.lease?.ordinal
      return entry === undefined || ordinal === undefined ? [] : [{ place, entry, ordinal }]
    })
    const changes = asking.map(({ entry, ordinal }) =>
      quotaChange(quota, this.id, this.keys.quota(entry.policy, entry.key, ordinal), this.keys.block(entry.policy, entry.key), entry, now),
    )
    const granted: (Granted | undefined)[] = []
    try {
      await this.records.run(changes, granted)
    } finally {
      for (const [i, { place, entry, ordinal }] of asking.entries()) {
        const one = granted[i]
        if (one === undefined) continue
        const { reply, news, blocked } = one
        results[place] = { cells: [], lease: reply, ...blocked }
        if (news === undefined) continue
        const name = this.keys.news(entry.policy, entry.key, ordinal)
        this.#announcer.announce(news, [{ name, value: JSON.stringify([news]), life: entry.lease?.lifetime ?? 0 }])
      }
    }
  }
}

function closedError(): WeirError {
  return closedPart('The connection to the store')
}
