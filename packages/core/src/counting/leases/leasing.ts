import type { Reserved, ReserveRequest } from '../../algorithms/reservations.ts'
import { DUE, IN_FLIGHT } from '../../keys/key-table.ts'
import { ASKED, CLOSE, COUNTDOWN, LEASE, SPAN_END } from '../../report/stats.ts'
import type { SyncEntry, SyncResult } from '../../store/contract.ts'
import type { LeaseAsk, LeaseNotice, LeaseReply } from '../../store/leases/ask.ts'
import { askFor, hearReply, heldOf, type Lease, surrender } from '../../store/leases/lease.ts'
import type { Batch, LeaseTicket, Ticket } from '../batch.ts'
import type { CountsSynced, StoreExchange } from '../site.ts'
import type { LeasedKey } from './leased-key.ts'
import type { Quota } from './quota.ts'

/** Round trips and milliseconds after which an unanswered lease request is repeated for waiting requests. */
const LOST_ROUND_TRIPS = 4
const LOST_TIME = 10
/** Milliseconds from one lease request to the next, at least, except for a new waiting request. */
const SPACING = 1
/** Milliseconds after which a part of the store that is down is tried again. */
const RETRY_ALONE = 200
/** Requests that are answered in one go. Each takes some microseconds. */
const SERVED_AT_ONCE = 1_000

let incarnations = 0

/** A number that is unique among all leases of this process. By it the store distinguishes each beginning of a key's counts. */
export function newIncarnation(): number {
  return ++incarnations
}

/** Whether a lease request had at least this limit, so that its answer also applies to requests of this limit. */
function askedBy(ask: LeaseAsk, limit: number): boolean {
  return ask.limit >= Math.floor(Math.min(limit, Number.MAX_SAFE_INTEGER))
}

/** A meter with leases. */
interface LeasedMeter<Key> extends CountsSynced {
  /** By slot. */
  readonly keys: readonly (Key | undefined)[]
  /** Whether a request stays within its limit if units were taken ahead by a higher one. */
  within(slot: number, key: Key, cost: number, limit: number): boolean
  /** Counts a waiting request if it fits now. */
  grants(slot: number, key: Key, units: number, limit: number, now: number): boolean
}

/** The lease requests of a meter, and the requests that wait for them: when they are sent, their answers, and which requests get units. */
export class Leasing<Key extends LeasedKey> {
  readonly #meter: LeasedMeter<Key>
  readonly #store: StoreExchange
  readonly #quota: Quota<Key>

  constructor(meter: LeasedMeter<Key>, store: StoreExchange, quota: Quota<Key>) {
    this.#meter = meter
    this.#store = store
    this.#quota = quota
  }

  /** Requests a sync at `at`, but keeps the spacing, however many notices come. `urgent`: immediately. */
  want(slot: number, at: number, urgent = false): void {
    const { flags } = this.#meter.site.table
    if (((flags[slot] as number) & DUE) !== 0) return
    flags[slot] = (flags[slot] as number) | DUE
    const from = urgent ? Number.NEGATIVE_INFINITY : (this.#meter.keys[slot]?.sentAt ?? Number.NEGATIVE_INFINITY) + SPACING
    this.#store.due(this.#meter, slot, Number.isNaN(at) ? from : Math.max(at, from))
  }

  /** A key is due. */
  collect(slot: number, key: Key, now: number, batch: Batch): void {
    this.serve(slot, key, now)
    const waits = key.waiting.first !== undefined
    // A key has one request at a time, unless requests wait and that request is lost.
    if (((this.#meter.site.table.flags[slot] as number) & IN_FLIGHT) !== 0 && !(waits && now >= key.sentAt + this.#lostAfter(key))) return
    const pauses = waits && key.pauses(now)
    if (!pauses || this.#quota.reused) this.send(slot, key, key.current, now, batch)
    if (pauses) this.want(slot, key.recallUntil)
  }

  /**
   * Adds a lease request to a batch, unless there is nothing to request or report. If its answer is lost, it is repeated for waiting
   * requests.
   *
   * @param reason `SPAN_END`: the process reports that it still uses the lease. `CLOSE`: it takes nothing more. Others as in `Stats`
   */
  send(slot: number, key: Key, lease: Lease, now: number, batch: Batch, reason?: number): void {
    const quota = this.#quota
    const { site, storePolicy } = this.#meter
    const { table } = site
    const isCurrent = lease === key.current
    const first = isCurrent && reason !== CLOSE && !(quota.reused && key.pauses(now)) ? key.waiting.first : undefined
    const waiting = first === undefined ? 0 : this.#whole(key.waiting.units)
    const limit = first === undefined ? site.limitOf(slot) : this.#limitOf(first)
    const ahead = reason === CLOSE ? 0 : quota.ahead(key, lease, waiting, limit, now)
    const few = ahead > Math.max(0, heldOf(lease)) && heldOf(lease) <= key.low
    const { returned } = lease
    if (reason === CLOSE || reason === SPAN_END || lease.tail) surrender(lease, waiting + ahead)
    const news = reason === SPAN_END || key.report || key.owes || lease.returned !== returned
    if (isCurrent && waiting === 0 && !few && !news) return
    const ask = this.askFor(lease, limit, this.#whole(first?.units ?? 0), waiting, ahead)
    if (isCurrent) key.said()
    key.sentAt = now
    key.askedBy = Math.max(key.askedBy, limit)
    table.flags[slot] = (table.flags[slot] as number) | IN_FLIGHT
    const end = waiting > 0 ? key.waiting.end : 0
    batch.add(
      this.#meter,
      { kind: 'lease', slot, of: key, lease, end },
      { policy: storePolicy, key: site.idOf(slot), cells: [], lease: ask },
    )
    if (end > 0) this.#store.due(this.#meter, slot, now + this.#lostAfter(key))
    site.stats.countExchange(reason ?? (waiting > 0 || (few && quota.reused) ? LEASE : quota.reused ? ASKED : COUNTDOWN))
  }

  #lostAfter({ roundTrip }: Key): number {
    return LOST_ROUND_TRIPS * roundTrip + LOST_TIME
  }

  /** Units as the store counts them: requests that share one are in the same process. */
  #whole(units: number): number {
    return this.#quota.reused ? Math.ceil(units) : units
  }

  /** A lease request. Without units it only reads the store's counts. */
  askFor(lease: Lease, limit: number, first = 0, waiting = 0, ahead = 0): LeaseAsk {
    const { lifetime, nodes } = this.#store
    const most = this.#quota.reused ? Math.floor(limit) : limit
    return askFor(lease, { first, waiting, ahead, limit: most, nodes, early: this.#quota.early(lease.ordinal), lifetime })
  }

  settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const { lease: ask } = entry
    const { lease: reply } = result
    if (typeof ticket === 'number' || ticket.kind !== 'lease' || ask === undefined || reply === undefined) {
      this.fail(ticket, now, true)
      return
    }
    const { slot, lease, end } = ticket
    const key = this.#landed(ticket)
    if (key === undefined) return
    const meter = this.#meter
    const { interval, calendar } = meter.site.policy
    // A process that is frozen now and then reads some answers long after they came.
    if (this.#store.freezes(now)) key.roundTrip = this.#store.roundTrip
    else key.roundTrip += (now - sent - key.roundTrip) / (key.roundTrip === 0 ? 1 : 8)
    meter.syncedBlocks.replied(slot, result, sent, now)
    hearReply(lease, ask, reply, sent, now, interval, calendar)
    if (reply.epoch > meter.site.resetAt(entry.key)) meter.syncedBlocks.reset(entry.key, reply.epoch, now)
    if (lease === key.current) key.heardUsed(ask, now)
    const applies = this.#quota.answered(slot, key, lease, ask, reply, now)
    this.serve(slot, key, now)
    if (applies) this.#rejectUnmet(slot, key, ask, reply, end, now)
    this.#goOn(slot, key, now)
  }

  /**
   * Rejects requests that the store has no units for.
   *
   * @param end the answer is for waiting requests with a number below it
   */
  #rejectUnmet(slot: number, key: Key, ask: LeaseAsk, reply: LeaseReply, end: number, now: number): void {
    const { current, waiting } = key
    const { first } = waiting
    // The lease may start only in a moment.
    if (end === 0 || first === undefined || now < current.from) return
    const least = this.#limitOf(first)
    const mayHave = askedBy(ask, least) && least - current.used >= first.units
    if (mayHave && reply.quiet === 0 && waiting.begin >= key.recalled) {
      // The store has called on other processes to return unused units.
      key.recalled = waiting.end
      key.letOthers(now)
      return
    }
    const usual = this.#meter.site.limitOf(slot)
    const isUnmet = (request: ReserveRequest) => {
      const limit = this.#limitOf(request)
      return !this.#meter.within(slot, key, request.units, limit) || (askedBy(ask, limit) && !this.#quota.fits(slot, key, request.units))
    }
    for (const request of waiting.takeUnmet(end, isUnmet)) {
      const limit = this.#limitOf(request)
      // Later requests may have a higher limit, and so more units.
      if (request.units <= 1 && limit >= usual) this.#quota.ranOut(key, request.units, limit, now)
      waiting.answer(request, this.#reserved(slot, key, 0, now))
    }
  }

  /** Sends the next request or report after an answer, if one is needed. */
  #goOn(slot: number, key: Key, now: number): void {
    const { current } = key
    if (key.waiting.first !== undefined) this.want(slot, current.granted > 0 ? Math.max(now, Math.min(current.from, now + LOST_TIME)) : now)
    else if (key.report || (current.tail && heldOf(current) > 0)) this.want(slot, now)
  }

  /**
   * A lease request has failed, or its result is unknown.
   *
   * @param alone others of its batch succeeded
   */
  fail(ticket: Ticket, now: number, alone: boolean): void {
    if (typeof ticket === 'number' || ticket.kind !== 'lease') return
    const key = this.#landed(ticket)
    if (key === undefined) return
    key.report = true
    if (alone) this.giveUp(key)
    this.want(ticket.slot, now + (alone ? RETRY_ALONE : 0))
    this.#quota.failed?.(key, ticket.lease)
  }

  /** Ends a lease request. Returns its key if the slot still has it. */
  #landed({ slot, of }: LeaseTicket): Key | undefined {
    const key = this.#meter.keys[slot]
    if (key !== of) return undefined
    const { flags } = this.#meter.site.table
    flags[slot] = (flags[slot] as number) & ~IN_FLIGHT
    return key
  }

  /** An announcement of the store to all processes. */
  heard(slot: number, key: Key, { ordinal, free, tail, lost }: LeaseNotice, now: number): void {
    const lease = [key.current, key.next].find((each) => each?.ordinal === ordinal)
    if (lease === undefined) return
    if (!lost) {
      Object.assign(lease, { free, tail })
      this.#quota.announced(slot, key, lease, now)
    }
    if (lease !== key.current) return
    if (lost || (tail && key.unsaid)) key.report = true
    if (key.report || key.waiting.first !== undefined || (tail && heldOf(lease) > 0)) this.want(slot, now)
  }

  /** Allows waiting requests of a key, in their order, as long as there are units. */
  serve(slot: number, key: Key, now: number): void {
    for (let served = 0; ; served++) {
      const { first } = key.waiting
      if (first === undefined) return
      if (served === SERVED_AT_ONCE) {
        this.want(slot, now)
        return
      }
      if (!this.#meter.grants(slot, key, first.units, this.#limitOf(first), now)) return
      key.waiting.shift()
      // The process may be frozen right after the response. Until it runs again, others would wait for the unit to be returned.
      if (this.#store.freezes(now)) key.report = true
      key.waiting.answer(first, this.#reserved(slot, key, first.costs.length, now))
    }
  }

  #reserved(slot: number, key: Key, count: number, now: number): Reserved {
    const meter = this.#meter
    return { count, left: meter.remaining(slot, now), resetAfterMs: meter.resetAfterMs(slot, now), ordinal: this.#quota.ordinalOf(key) }
  }

  /** The limit of a request now. An update may have changed it. */
  #limitOf({ key, given }: ReserveRequest): number {
    return this.#meter.site.limitFor(key, given)
  }

  /** The store is down or the key is removed: waiting requests are decided without the store. */
  giveUp({ waiting }: Key): void {
    for (const request of waiting.takeUnmet(waiting.end, () => true)) waiting.answer(request)
  }
}
