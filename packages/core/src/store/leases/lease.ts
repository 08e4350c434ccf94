import { type Calendar, intervalOf } from '../../time/calendar.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { HELD, type LeaseAsk, type LeaseReply } from './ask.ts'
import { servesLease } from './grant.ts'

/**
 * A process's lease of a key's quota in one interval: its side of the protocol. Units as in `LeaseAsk`; times are of the process's
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
  /** The last ask that was made, and the last one whose answer is known. */
  seq: number
  heard: number
  /** The most that was asked for. */
  asked: number
  /** When units may be used: never before the interval begins by the store's clock, nor after it has ended there; `HELD` ones as long as the store keeps them. */
  from: number
  until: number
  /** The store's last reply: see `LeaseReply`. */
  free: number
  used: number
  tail: boolean
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
  }
}

/** Whether the store may have given `HELD` units to others meanwhile: nothing is begun on them any more. */
export function isOver({ heard, until }: Lease, now: number): boolean {
  return heard > 0 && now >= until
}

/** The lease that follows one that is over: what runs goes on, and no unit is held for it. */
export function beginAnew(lease: Lease, incarnation: number, limit: number): Lease {
  const next = newLease(lease.ordinal, incarnation, limit)
  next.taken = lease.taken - lease.given
  return next
}

/** Units that may be used at once; less than 0 where more was used than granted. */
export function heldOf({ granted, returned, taken, given }: Lease): number {
  return granted - returned - taken + given
}

/** Uses units of a lease if they are there and its interval runs. */
export function takeLease(lease: Lease, cost: number, now: number): boolean {
  if (heldOf(lease) < cost || now < lease.from || now >= lease.until) return false
  lease.taken += cost
  return true
}

/** Gives back all but `keep` units. They are never used again, whether or not the store hears of it. */
export function surrender(lease: Lease, keep: number): void {
  lease.returned += Math.max(0, heldOf(lease) - Math.max(0, keep))
}

/** A limit of `Infinity` is one of so many units to the store. */
const MOST: number = Number.MAX_SAFE_INTEGER

/** The quota that waiting requests need of a key, and the quota that the process wants beyond that. The rest as in `LeaseAsk`. */
export interface LeaseWish extends Pick<LeaseAsk, 'limit' | 'nodes' | 'early' | 'lifetime'> {
  /** Units of the first request that waits, and of all of them; 0 when none does. */
  readonly first: number
  readonly waiting: number
  /** Units to hold beyond these. */
  readonly ahead: number
}

/** The next ask for a lease. */
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
  }
}

/** The most by which clocks may drift apart until a future time, as a part of the time until then. Clocks of computers stay within it. */
const DRIFT = 1e-4

/**
 * Takes an answer of the store down. One by whose time the store could not have granted anything of this interval says nothing.
 *
 * @param sent when the ask was sent, and `received` when the answer came
 * @param interval its length; of a calendar the usual one
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
  // The store may have given the units to others: before an ask came to it that was sent in time, or before a later one whose answer is known.
  if (held && (ask.seq <= lease.heard || isOver(lease, received))) return
  const { start, end: over } = intervalOf(lease.ordinal, { interval, calendar })
  if (reply.now >= over && !held) return
  // Whatever a store says, a node never has more than it asked for, nor more than the limit.
  const granted = Math.min(reply.granted, lease.asked, lease.returned + lease.cleared + ask.limit)
  lease.granted = Math.max(lease.granted, granted)
  // The store's clock was read after the ask was sent and before the answer came: these bounds are on the safe side.
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

/** The key was reset: what was used up to now counts no more. */
export function hearReset(lease: Lease, epoch: number): void {
  if (epoch <= lease.epoch) return
  lease.epoch = epoch
  lease.cleared = lease.taken - lease.given
}
