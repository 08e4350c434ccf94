import type { StorePolicy } from '../store/contract.ts'
import { HELD, type LeaseAsk, type LeaseNotice, type LeaseReply } from '../store/leases/ask.ts'
import { grantLease, type LeaseRecord, newLeaseRecord, servesLease } from '../store/leases/grant.ts'
import { endOf, type Ordinal } from '../time/intervals.ts'
import { type Account, keyBytes, NODE_BYTES, RETURN_BYTES, Tally } from './account.ts'
import { type LeaseRow, type RowsChanged, rowOf } from './rows.ts'

/** Milliseconds for which an interval's record is kept after its end, because clocks may be corrected a little. */
const KEPT = 1_000
/**
 * The size of the largest record that is stored, in open reservations of 28 bytes, and that of a process without any. A Durable Object
 * stores at most 2 MB under one name, and writes the record of a key as a whole.
 */
const MOST_STORED = 50_000
const STORED_PROCESS = 8

/** One key's leases in one interval, or its `HELD` units. Times are of the monotonic clock. */
interface Page {
  readonly name: string
  readonly policyId: string
  readonly key: string
  readonly ordinal: Ordinal
  readonly record: LeaseRecord
  readonly tally: Tally
  /** The most open reservations of each row, which were paid for. */
  readonly paid: Map<string, number>
  until: number
  /** Until then heartbeats return the notice, because some processes may have missed the announcement. */
  newsUntil: number
  lost: boolean
}

/** An answer, and a notice for all processes. */
export interface Granted {
  readonly reply: LeaseReply
  readonly news: LeaseNotice | undefined
}

/** Quota that processes have leased, by policy, key and interval. */
export class LeaseBook {
  readonly #pages = new Map<string, Page>()
  readonly #changed: RowsChanged | undefined

  /** @param changed - receives the leases of each key that changed */
  constructor(changed?: RowsChanged) {
    this.#changed = changed
  }

  get size(): number {
    return this.#pages.size
  }

  /**
   * @param wall the time that the processes agree on
   * @returns undefined if the account is used up, or the record would be too large to store
   */
  ask(
    nodeId: string,
    policy: StorePolicy,
    key: string,
    ask: LeaseAsk,
    wall: number,
    monotonic: number,
    account?: Account,
  ): Granted | undefined {
    // For an interval that isn't running, the hub has no leases and never will.
    if (!servesLease(ask, wall, policy.width)) {
      return { reply: { granted: 0, free: 0, used: 0, tail: false, quiet: 0, epoch: 0, now: wall }, news: undefined }
    }
    const name = rowOf('lease', ask.ordinal, policy.width, policy.id, key)
    let page = this.#pages.get(name)
    const row = `${nodeId} ${ask.incarnation}`
    if (this.#changed !== undefined && page !== undefined && storedSize(page.record, row, ask) > MOST_STORED) return undefined
    const paid = page?.paid.get(row) ?? 0
    const open = Math.max(paid, ask.open?.length ?? 0)
    const rowBytes = (page?.record.rows.has(row) === true ? 0 : NODE_BYTES) + RETURN_BYTES * (open - paid)
    const bytes = (page === undefined ? keyBytes(key) : 0) + rowBytes
    if (bytes > 0 && account?.take(bytes) === false) return undefined
    const held = ask.ordinal === HELD
    const until = monotonic + KEPT + (held ? ask.lifetime : endOf(ask.ordinal, policy.width) - wall)
    if (page === undefined) {
      const { ordinal } = ask
      const none = Number.NEGATIVE_INFINITY
      const accounts = { tally: new Tally(), paid: new Map() }
      page = { name, policyId: policy.id, key, ordinal, record: newLeaseRecord(), ...accounts, until, newsUntil: none, lost: false }
      this.#pages.set(name, page)
    } else if (held) page.until = Math.max(page.until, until)
    if (account !== undefined && bytes > 0) page.tally.note(account, bytes)
    if (open > paid) page.paid.set(row, open)
    const { reply, announce, lost } = grantLease(page.record, row, ask, wall)
    if (announce) {
      page.newsUntil = monotonic + ask.lifetime
      page.lost = lost || (page.lost && reply.quiet > 0)
    }
    this.#report(name)
    return { reply, news: announce ? noticeOf(page, reply.free) : undefined }
  }

  /** Takes over leases of a former life. Returns whether they still matter, and the account has room for them. */
  restore({ type: _, ...kept }: LeaseRow, monotonic: number, account?: Account): boolean {
    const paid = new Map(Array.from(kept.record.rows, ([row, { open }]) => [row, open.length]))
    const open = [...paid.values()].reduce((sum, count) => sum + count, 0)
    const bytes = keyBytes(kept.key) + NODE_BYTES * paid.size + RETURN_BYTES * open
    if (kept.until <= monotonic || account?.take(bytes) === false) return false
    const tally = new Tally()
    if (account !== undefined) tally.note(account, bytes)
    this.#pages.set(kept.name, { ...kept, tally, paid })
    return true
  }

  /** Leases of these policies' keys that some processes may not have received. */
  news(policies: readonly StorePolicy[], monotonic: number): LeaseNotice[] {
    const limits = new Map(policies.map(({ id, limit }) => [id, limit]))
    const notices: LeaseNotice[] = []
    for (const page of this.#pages.values()) {
      const limit = limits.get(page.policyId)
      if (limit !== undefined && page.newsUntil > monotonic) notices.push(noticeOf(page, Math.max(0, limit - page.record.out)))
    }
    return notices
  }

  sweep(monotonic: number): void {
    for (const [name, { until, tally }] of this.#pages) {
      if (until > monotonic) continue
      this.#pages.delete(name)
      tally.release()
      this.#report(name)
    }
  }

  clear(): void {
    for (const { tally } of this.#pages.values()) tally.release()
    this.#pages.clear()
  }

  #report(name: string): void {
    this.#changed?.(name, () => {
      const page = this.#pages.get(name)
      if (page === undefined) return undefined
      const { tally: _, paid: __, ...kept } = page
      return { type: 'lease', ...kept }
    })
  }
}

/** The size of a record with a process's request. */
function storedSize({ rows }: LeaseRecord, name: string, { open = [] }: LeaseAsk): number {
  let size = rows.has(name) ? 0 : STORED_PROCESS + open.length
  for (const [of, row] of rows) size += STORED_PROCESS + (of === name ? open : row.open).length
  return size
}

function noticeOf({ policyId, key, ordinal, record, lost }: Page, free: number): LeaseNotice {
  return { type: 'lease', policyId, key, ordinal, free, tail: record.tail, lost }
}
