import { endOf, startOf } from '../../time/intervals.ts'
import { HELD, type LeaseAsk, type LeaseReply, type LeaseReturn } from './ask.ts'

/**
 * The store's counts of one process (one incarnation of it) in one interval of a key. Numbers are units. For all except `seq` see
 * `LeaseAsk`.
 */
export interface LeaseRow {
  granted: number
  returned: number
  taken: number
  given: number
  cleared: number
  /** The number of the latest request. */
  seq: number
  /** For `HELD` units: the time, by the store's clock, at which they return unless the process sends another request. */
  until: number
  /** Open reservations, as the process last sent them. */
  open: readonly LeaseReturn[]
  /** Units that the store has returned for the process at the end of reservations, and units that it has charged. */
  back: number
  more: number
}

/**
 * The store's record of a key in one interval:
 *
 *     out      units that all processes have leased or used, the sum of `outOf` over the rows
 *     used     the part of these that processes have reported as used
 *     free     limit − out
 */
export interface LeaseRecord {
  out: number
  used: number
  tail: boolean
  /** The time, by the store's clock, until which nothing is granted. 0 if there is none. */
  quietUntil: number
  /** The key's last reset, or 0. */
  epoch: number
  /** No row's `until` is earlier, and no open reservation's `due`. */
  earliest: number
  /** By process and incarnation. */
  readonly rows: Map<string, LeaseRow>
}

/** The reply to a request, and the changes that other processes should receive. */
export interface LeaseNews {
  readonly reply: LeaseReply
  /** The tail began, units are free again after none were, or the store has lost leases. */
  readonly announce: boolean
  readonly lost: boolean
}

export function newLeaseRecord(): LeaseRecord {
  return { out: 0, used: 0, tail: false, quietUntil: 0, epoch: 0, earliest: Number.POSITIVE_INFINITY, rows: new Map() }
}

export function newLeaseRow(): LeaseRow {
  return { granted: 0, returned: 0, taken: 0, given: 0, cleared: 0, seq: 0, until: Number.POSITIVE_INFINITY, open: [], back: 0, more: 0 }
}

/** Whether the store grants units of this interval: if it runs by the store's clock, or begins within a span. `HELD` units always. */
export function servesLease({ ordinal, early }: LeaseAsk, now: number, interval: number): boolean {
  if (ordinal === HELD) return true
  return now >= startOf(ordinal, interval) - early && now < endOf(ordinal, interval)
}

/**
 * Notes a process's counts of a key in one interval and grants it free units, in one atomic step of the store. Every store's script follows
 * this model. The record is changed in place, and nothing else is read or written.
 *
 * Two rules keep the limit. `row.granted` is at least the grants that the process knows, and `row.returned` at most its returns, so no
 * process ever has more units than its row counts. And this function never grows the sum of the rows beyond the limit.
 *
 * @param row the name of the process and its incarnation in the record
 * @param now the store's clock, milliseconds
 */
export function grantLease(record: LeaseRecord, row: string, ask: LeaseAsk, now: number): LeaseNews {
  if (now >= record.earliest) forgetSilent(record, now)
  const before = ask.limit - record.out
  const wasTail = record.tail
  if (ask.epoch > record.epoch) clearRecord(record, ask.epoch)
  let mine = record.rows.get(row)
  if (mine === undefined) {
    mine = newLeaseRow()
    record.rows.set(row, mine)
  }
  if (ask.ordinal === HELD) {
    mine.until = now + ask.lifetime
    record.earliest = Math.min(record.earliest, mine.until)
  }
  const lost = ask.granted > mine.granted
  if (lost) record.quietUntil = now + ask.lifetime
  change(record, mine, {
    granted: Math.max(mine.granted, ask.granted),
    returned: Math.max(mine.returned, ask.returned),
    taken: Math.max(mine.taken, ask.taken),
    given: Math.max(mine.given, ask.given),
    // A process that has received the reset knows best. The store may not have received its earlier refunds.
    cleared: ask.epoch < record.epoch ? Math.max(mine.cleared, ask.cleared) : ask.cleared,
  })
  // A request that was overtaken by a later one has nothing new.
  if (ask.seq > mine.seq) {
    // The process is alive, so its own counts apply.
    change(record, mine, { back: 0, more: 0 })
    mine.open = ask.open ?? []
    for (const { due } of mine.open) record.earliest = Math.min(record.earliest, due)
  }

  const room = Math.max(0, ask.limit - record.out)
  const scarce = record.tail || room <= ask.nodes
  let unmet = false
  if (ask.seq > mine.seq && now >= record.quietUntil) {
    // A process leases at most half of the free units ahead, because the needs of the others are unknown.
    const ahead = scarce ? ask.waiting : Math.max(ask.waiting, Math.min(ask.upTo, mine.granted + Math.floor(room / 2)))
    const most = mine.returned + mine.cleared + outOf(mine) + room
    const reached = Math.min(ahead, most)
    if (reached > mine.granted && reached >= ask.least) change(record, mine, { granted: reached })
    unmet = ask.waiting > mine.granted
  }
  mine.seq = Math.max(mine.seq, ask.seq)

  const free = Math.max(0, ask.limit - record.out)
  if (unmet || free <= ask.nodes) record.tail = true
  else if (free > ENOUGH * ask.nodes) record.tail = false
  const { tail, used, epoch } = record
  return {
    reply: { granted: mine.granted, free, used, tail, quiet: Math.max(0, record.quietUntil - now), epoch, now },
    announce: lost || (tail && !wasTail) || (before < 1 && free >= 1),
    lost,
  }
}

/** Free units per process above which the tail ends: more than the number at which it begins, or the tail would come and go. */
const ENOUGH = 2

/** Units that a process has leased or used: more than it was granted if it charged, or continued without the store. */
function outOf({ granted, returned, taken, given, cleared, back, more }: LeaseRow): number {
  return Math.max(0, Math.max(granted - returned, taken - given + more) - back - cleared)
}

function usedOf({ taken, given, cleared, back, more }: LeaseRow): number {
  return Math.max(0, taken - given + more - back - cleared)
}

function change(record: LeaseRecord, row: LeaseRow, counts: Partial<LeaseRow>): void {
  record.out -= outOf(row)
  record.used -= usedOf(row)
  Object.assign(row, counts)
  record.out += outOf(row)
  record.used += usedOf(row)
}

/** Returns the units of processes that were silent for their lifetime, and settles the open reservations of dead processes. */
function forgetSilent(record: LeaseRecord, now: number): void {
  record.earliest = Number.POSITIVE_INFINITY
  for (const [name, row] of record.rows) {
    if (row.until > now) {
      settleOpen(record, row, now)
      record.earliest = Math.min(record.earliest, row.until, ...row.open.map(({ due }) => due))
      continue
    }
    record.out -= outOf(row)
    record.used -= usedOf(row)
    record.rows.delete(name)
  }
}

/**
 * Settles open reservations that their process should have settled. Returned units belong to no process any more. If the process is alive
 * after all, it doesn't use them again, and its next request replaces their number.
 */
function settleOpen(record: LeaseRecord, row: LeaseRow, now: number): void {
  let { back, more } = row
  for (const one of row.open) {
    if (one.due > now) continue
    back += Math.max(0, one.back)
    more += Math.max(0, -one.back)
  }
  change(record, row, { back, more })
  row.open = row.open.filter(({ due }) => due > now)
}

/**
 * Handles a reset: units that processes reported as used no longer count. Their other units still do, until a request shows that the
 * process received the reset.
 */
function clearRecord(record: LeaseRecord, epoch: number): void {
  record.epoch = epoch
  for (const row of record.rows.values()) {
    row.open = []
    change(record, row, { back: 0, more: 0, cleared: Math.max(row.cleared, row.taken - row.given) })
  }
}
