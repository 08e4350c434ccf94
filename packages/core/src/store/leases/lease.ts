import { type Calendar, intervalOf } from '../../time/calendar.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { OpenReservation } from '../decider.ts'
import { HELD, type LeaseAsk, type LeaseReply, type LeaseReturn, MOST_RETURNS } from './ask.ts'
import { servesLease } from './grant.ts'

/**
 * A process's lease of a key's quota in one interval: its side of the protocol. Units are as in `LeaseAsk`. Times are of the process's
 * monotonic clock.
 */
export interface Lease {
  readonly ordinal: Ordinal
  readonly incarnation: number
  granted: number
  returned: number
  taken: number
  given: number
  cleared: number
  epoch: number
  /** The number of the last request, and of the last answered request. */
  seq: number
  heard: number
  /** The highest `upTo` of any request. */
  asked: number
  /**
   * The time in which units may be used: never before the interval begins by the store's clock, and never after it has ended there. `HELD`
   * units may be used as long as the store keeps them.
   */
  from: number
  until: number
  /** The store's last reply: see `LeaseReply`. */
  free: number
  used: number
  tail: boolean
  /** Units of open reservations that change at a time, by the store's clock, if this process is dead by then: see `LeaseReturn`. */
  readonly open: Map<number, number>
}

export function newLease(ordinal: Ordinal, incarnation: number, limit: number): Lease {
  return {
    ordinal,
    incarnation,
    granted: 0,
    returned: 0,
    taken: 0,
    given: 0,
    cleared: 0,
    epoch: 0,
    seq: 0,
    heard: 0,
    asked: 0,
    from: Number.POSITIVE_INFINITY,
    until: Number.NEGATIVE_INFINITY,
    free: limit,
    used: 0,
    tail: false,
    open: new Map(),
  }
}

/** Changes the units that return at a time if this process is dead by then. */
export function changeOpen({ open }: Lease, due: number, back: number): void {
  const units = (open.get(due) ?? 0) + back
  if (units === 0) open.delete(due)
  else open.set(due, units)
}

/**
 * Closes an open reservation that has used `used` units. The caller refunds or charges the difference. The store may return the refunded
 * units before it receives this, so this process doesn't use them again.
 */
export function closeOpen(lease: Lease, { end, units, due }: Omit<OpenReservation, 'id'>, used: number): void {
  changeOpen(lease, end, due - units)
  if (due !== units && used < units) lease.returned += units - used
}

/** Whether the store may have granted the `HELD` units to other processes meanwhile. Then no request starts on them. */
export function isOver({ heard, until }: Lease, now: number): boolean {
  return heard > 0 && now >= until
}

/** Makes the lease that follows an expired one. Running requests continue, although no units are granted for them. */
export function beginAnew(lease: Lease, incarnation: number, limit: number): Lease {
  const next = newLease(lease.ordinal, incarnation, limit)
  next.taken = lease.taken - lease.given
  return next
}

/** Units that can be used immediately. Less than 0 if more units were used than granted. */
export function heldOf({ granted, returned, taken, given }: Lease): number {
  return granted - returned - taken + given
}

/** Uses units of a lease if it has enough and its interval runs. */
export function takeLease(lease: Lease, cost: number, now: number): boolean {
  if (heldOf(lease) < cost || now < lease.from || now >= lease.until) return false
  lease.taken += cost
  return true
}

/** Returns all but `keep` units. They are never used again, even if the return doesn't reach the store. */
export function surrender(lease: Lease, keep: number): void {
  lease.returned += Math.max(0, heldOf(lease) - Math.max(0, keep))
}

/** The number of units that replaces `Infinity` in a request. */
const MOST: number = Number.MAX_SAFE_INTEGER

/** Quota of a key that waiting requests need, and quota that the process leases ahead. The rest is as in `LeaseAsk`. */
export interface LeaseWish extends Pick<LeaseAsk, 'limit' | 'nodes' | 'early' | 'lifetime'> {
  /** Units of the first waiting request, and of all waiting requests. Both are 0 if none waits. */
  readonly first: number
  readonly waiting: number
  /** Units to lease beyond these. */
  readonly ahead: number
}

/** Makes the next request for the lease. */
export function askFor(lease: Lease, { first, waiting, ahead, limit, nodes, early, lifetime }: LeaseWish): LeaseAsk {
  const { ordinal, incarnation, granted, returned, taken, given, cleared, epoch } = lease
  const short = granted - heldOf(lease)
  const all = waiting > 0 ? Math.max(granted, short + waiting) : granted
  const upTo = ahead > 0 ? Math.max(all, Math.min(MOST, short + waiting + ahead)) : all
  lease.asked = Math.max(lease.asked, upTo)
  return {
    ordinal,
    incarnation,
    seq: ++lease.seq,
    granted,
    returned,
    taken,
    given,
    cleared,
    epoch,
    least: waiting > 0 ? Math.max(granted, short + first) : granted,
    waiting: all,
    upTo,
    limit: Math.min(MOST, limit),
    nodes,
    early,
    lifetime,
    ...(lease.open.size > 0 && { open: returnsOf(lease) }),
  }
}

function returnsOf({ open }: Lease): readonly LeaseReturn[] {
  return [...open].slice(0, MOST_RETURNS).map(([due, back]) => ({ due, back }))
}

/** The largest drift between clocks, as a part of the time that passes. Clocks of computers stay within it. */
const DRIFT = 1e-4

/**
 * Updates a lease by a reply of the store. The reply is ignored if the store could not have granted units of this interval at its time.
 *
 * @param sent the time at which the request was sent, and `received` the time at which the reply came
 * @param interval its length, or the usual length for a calendar
 */
export function hearReply(
  lease: Lease,
  ask: LeaseAsk,
  reply: LeaseReply,
  sent: number,
  received: number,
  interval: number,
  calendar?: Calendar,
): void {
  if (ask.ordinal !== lease.ordinal || ask.incarnation !== lease.incarnation || !servesLease(ask, reply.now, interval)) return
  const held = lease.ordinal === HELD
  // The store may have granted the units to others: before it received this request, or before a later one with a known answer.
  if (held && (ask.seq <= lease.heard || isOver(lease, received))) return
  const { start, end: over } = intervalOf(lease.ordinal, { interval, calendar })
  if (reply.now >= over && !held) return
  // Even with a wrong reply, a process never gets more than it requested, nor more than the limit.
  const granted = Math.min(reply.granted, lease.asked, lease.returned + lease.cleared + ask.limit)
  lease.granted = Math.max(lease.granted, granted)
  // The store read its clock after the request was sent and before the reply came, so these bounds are on the safe side.
  const end = held ? ask.lifetime : over - reply.now
  lease.from = Math.min(lease.from, received + (1 + DRIFT) * (held ? 0 : Math.max(0, start - reply.now)))
  lease.until = Math.max(lease.until, sent + (1 - DRIFT) * end)
  if (ask.seq <= lease.heard) return
  lease.heard = ask.seq
  lease.free = reply.free
  lease.used = reply.used
  lease.tail = reply.tail
  hearReset(lease, reply.epoch)
}

/** Handles a reset of the key: units used up to now no longer count. */
export function hearReset(lease: Lease, epoch: number): void {
  if (epoch <= lease.epoch) return
  lease.epoch = epoch
  lease.cleared = lease.taken - lease.given
  lease.open.clear()
}
