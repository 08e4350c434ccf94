import type { LeaseRecord, LeaseRow } from '@weir/core/leases'
import {
  endOf,
  HELD,
  type LeaseNotice,
  type LeaseReply,
  type LeaseReturn,
  MOST_RETURNS,
  type StorePolicy,
  type SyncEntry,
} from '@weir/core/sync'
import { blockedOf, readBlock } from './blocks.ts'
import type { Change } from './records.ts'

/** An interval's record stays for this many milliseconds after its end, because clocks may be corrected a little. */
const KEPT = 1_000

export interface Granted {
  readonly reply: LeaseReply
  /** The announcement for other processes, undefined if there is none. */
  readonly news: LeaseNotice | undefined
  readonly blocked: ReturnType<typeof blockedOf>
}

/** The part of core that grants leases. It is loaded when a process first takes quota ahead. */
type Grants = Pick<typeof import('@weir/core/leases'), 'grantLease' | 'newLeaseRecord' | 'servesLease'>

/**
 * Returns the change for a process's request for quota of one key in one interval.
 *
 * @param name the key of the record in etcd
 * @param block the key of the block in etcd
 * @param now the processes' common time
 */
export function quotaChange(grants: Grants, node: string, name: string, block: string, entry: SyncEntry, now: number): Change<Granted> {
  const { policy, key, lease: ask } = entry
  if (ask === undefined) throw new TypeError('The entry requests no quota.')
  // For an interval that isn't running, etcd has no leases and never will.
  const served = grants.servesLease(ask, now, policy.width)
  return {
    names: [name, block],
    decide([text, held]) {
      const blocked = blockedOf(held === undefined ? undefined : readBlock(held), now)
      if (!served) return { writes: [undefined, undefined], result: { reply: nothing(now), news: undefined, blocked } }
      const record = (text === undefined ? undefined : readRecord(text)) ?? { ...grants.newLeaseRecord(), until: 0 }
      const { reply, announce, lost } = grants.grantLease(record, `${node} ${ask.incarnation}`, ask, now)
      const over = now + KEPT + (ask.ordinal === HELD ? ask.lifetime : endOf(ask.ordinal, policy.width) - now)
      const until = Math.max(record.until, over)
      return {
        writes: [{ value: textOf({ ...record, until }), life: until - now }, undefined],
        result: { reply, news: announce ? noticeOf(policy, key, entry, reply, lost) : undefined, blocked },
      }
    },
  }
}

function nothing(now: number): LeaseReply {
  return { granted: 0, free: 0, used: 0, tail: false, quiet: 0, epoch: 0, now }
}

function noticeOf(policy: StorePolicy, key: string, { lease }: SyncEntry, { free, tail, quiet }: LeaseReply, lost: boolean): LeaseNotice {
  return { type: 'lease', policyId: policy.id, key, ordinal: lease?.ordinal ?? HELD, free, tail, lost: lost || quiet > 0 }
}

type Kept = LeaseRecord & { readonly until: number }

/** The columns of a row. Then come `due` and `back` of its open reservations, in one list. */
const COLUMNS = ['granted', 'returned', 'taken', 'given', 'cleared', 'seq', 'until', 'back', 'more'] as const

function textOf({ out, used, tail, quietUntil, epoch, rows, until }: Kept): string {
  // JSON has no infinity, so a row without an end has null there.
  const list = Array.from(rows, ([name, row]) => [
    name,
    ...COLUMNS.map((column) => row[column]),
    row.open.flatMap(({ due, back }) => [due, back]),
  ])
  return JSON.stringify([out, used, tail ? 1 : 0, quietUntil, epoch, until, list])
}

function readRecord(text: string): Kept | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!Array.isArray(parsed) || parsed.length !== 7) return undefined
  const [out, used, tail, quietUntil, epoch, until, list] = parsed as readonly unknown[]
  if (!isAmount(out) || !isAmount(used) || !isAmount(quietUntil) || !isAmount(epoch) || !isAmount(until) || !Array.isArray(list)) {
    return undefined
  }
  const rows = new Map<string, LeaseRow>()
  let earliest = Number.POSITIVE_INFINITY
  for (const item of list as readonly unknown[]) {
    const row = readRow(item)
    if (row === undefined) return undefined
    rows.set(...row)
    earliest = Math.min(earliest, row[1].until, ...row[1].open.map(({ due }) => due))
  }
  return { out, used, tail: tail === 1, quietUntil, epoch, earliest, rows, until }
}

function readRow(item: unknown): [string, LeaseRow] | undefined {
  if (!Array.isArray(item) || item.length !== 2 + COLUMNS.length) return undefined
  const [name, granted, returned, taken, given, cleared, seq, until, back, more, returns] = item as readonly unknown[]
  if (typeof name !== 'string' || !isAmount(granted) || !isAmount(returned) || !isAmount(taken) || !isAmount(given)) return undefined
  if (!isAmount(cleared) || !isAmount(seq) || !isAmount(back) || !isAmount(more) || !(until === null || isAmount(until))) return undefined
  const open = readReturns(returns)
  return open && [name, { granted, returned, taken, given, cleared, seq, until: until ?? Number.POSITIVE_INFINITY, open, back, more }]
}

function readReturns(list: unknown): readonly LeaseReturn[] | undefined {
  if (!Array.isArray(list) || list.length > 2 * MOST_RETURNS || list.length % 2 !== 0) return undefined
  const numbers = list as readonly unknown[]
  const open: LeaseReturn[] = []
  for (let i = 0; i < numbers.length; i += 2) {
    const [due, back] = [numbers[i], numbers[i + 1]]
    if (!isAmount(due) || typeof back !== 'number' || !isAmount(Math.abs(back))) return undefined
    open.push({ due, back })
  }
  return open
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
}
