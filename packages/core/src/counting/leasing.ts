import type { Reservation } from '../algorithms/meter.ts'
import { DUE, IN_FLIGHT } from '../keys/key-table.ts'
import type { SyncEntry, SyncResult } from '../store/contract.ts'
import type { LeaseAsk, LeaseReply } from '../store/leases/ask.ts'
import { askFor, type Lease, type LeaseWish } from '../store/leases/lease.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Batch, LeaseTicket, Ticket } from './batch.ts'
import type { LeasedKey } from './leased-key.ts'
import type { Exchanging, StoreExchange } from './site.ts'

/** Round trips and milliseconds after which an unanswered lease request is repeated for waiting requests. */
const LOST_ROUND_TRIPS = 4
/** See `LOST_ROUND_TRIPS`. */
export const LOST_TIME = 10
/** Milliseconds from one lease request to the next, at least, except for a new waiting request. */
const SPACING = 1
/** Milliseconds after which a part of the store that is down is tried again. */
const RETRY_ALONE = 200
/** Requests that are answered in one go; each takes some microseconds. */
const SERVED_AT_ONCE = 1_000

let incarnations = 0

/** Whether a lease request had at least this limit, so that its answer also applies to requests of this limit. */
export function askedBy(ask: LeaseAsk, limit: number): boolean {
  return ask.limit >= Math.floor(Math.min(limit, Number.MAX_SAFE_INTEGER))
}

/** A number that is unique among all leases of this process, so that the store can tell each beginning of a key's counts apart. */
export function newIncarnation(): number {
  return ++incarnations
}

/** The store's answer to a lease request, for a key that was not removed meanwhile. */
export interface Answered<Key> {
  readonly slot: number
  readonly key: Key
  readonly lease: Lease
  readonly ask: LeaseAsk
  readonly reply: LeaseReply
  /** The answer is for waiting requests with a number below it. */
  readonly end: number
}

/**
 * The lease requests of a meter, and the requests that wait for them: when they are sent, what their result is, and which requests get it.
 * The meter itself counts, chooses the amount and interprets the answer.
 */
export class Leasing<Key extends LeasedKey> {
  /** The leases of each key in this process, by slot. */
  readonly keys: (Key | undefined)[] = []
  readonly #meter: Exchanging
  readonly #exchange: StoreExchange

  constructor(meter: Exchanging, exchange: StoreExchange) {
    this.#meter = meter
    this.#exchange = exchange
  }

  /** Without the store a process uses its own lease, and follows its `failMode`. `used`: units of the key that count here. */
  allowsAlone(slot: number, { current }: Key, used: number, cost: number): boolean {
    const { failMode } = this.#meter.policy
    if (failMode === 'open') return true
    if (failMode === 'closed') return false
    const limit = this.#meter.site.limitOf(slot)
    const others = Math.min(current.free, limit) / this.#exchange.nodes
    return used + cost <= Math.min(limit, current.granted - current.returned + others)
  }

  /** Requests a sync at `at`, but keeps the spacing, however many notices come. `urgent`: immediately. */
  want(slot: number, at: number, urgent = false): void {
    const { flags } = this.#meter.site.table
    if (((flags[slot] as number) & DUE) !== 0 || !this.#exchange.connected) return
    flags[slot] = (flags[slot] as number) | DUE
    const from = urgent ? Number.NEGATIVE_INFINITY : (this.keys[slot]?.sentAt ?? Number.NEGATIVE_INFINITY) + SPACING
    this.#exchange.due(this.#meter, slot, Number.isNaN(at) ? from : Math.max(at, from))
  }

  /** Sends the counts of a key that the store lacks, however few they are. */
  tellAll(id: string, now: number): void {
    const slot = this.#meter.site.findId(id)
    const key = slot < 0 ? undefined : this.keys[slot]
    if (key === undefined || !key.unsaid) return
    key.report = true
    this.want(slot, now)
  }

  /** Whether a lease request may be sent now: none of the key is in flight, or requests wait for a lost one. */
  maySend(slot: number, key: Key, now: number): boolean {
    if (((this.#meter.site.table.flags[slot] as number) & IN_FLIGHT) === 0) return true
    return key.waiting.first !== undefined && now >= key.sentAt + this.#lostAfter(key)
  }

  /** Adds a lease request to a batch. If its answer is lost, it is repeated for the waiting requests. */
  send(slot: number, key: Key, lease: Lease, wish: LeaseWish, now: number, batch: Batch): void {
    const { site, storePolicy } = this.#meter
    const ask = askFor(lease, wish)
    if (lease === key.current) key.said()
    key.sentAt = now
    key.askedBy = Math.max(key.askedBy, wish.limit)
    const { flags } = site.table
    flags[slot] = (flags[slot] as number) | IN_FLIGHT
    const end = wish.waiting > 0 ? key.waiting.end : 0
    const ticket: LeaseTicket = { kind: 'lease', slot, of: key, lease, end }
    batch.add(this.#meter, ticket, { policy: storePolicy, key: site.idOf(slot), cells: [], lease: ask })
    if (end > 0) this.#exchange.due(this.#meter, slot, now + this.#lostAfter(key))
  }

  #lostAfter({ roundTrip }: Key): number {
    return LOST_ROUND_TRIPS * roundTrip + LOST_TIME
  }

  /** The store's answer; undefined if it is of no use, because it contains no lease or the key was removed. */
  answered(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): Answered<Key> | undefined {
    const { lease: ask } = entry
    const { lease: reply } = result
    if (typeof ticket === 'number' || ticket.kind !== 'lease' || ask === undefined || reply === undefined) {
      this.#meter.fail(ticket, entry, now, true)
      return undefined
    }
    const { slot, lease, end } = ticket
    const key = this.#landed(ticket)
    if (key === undefined) return undefined
    key.roundTrip += (now - sent - key.roundTrip) / (key.roundTrip === 0 ? 1 : 8)
    if (result.blocked > 0) this.#meter.blockRemotely(slot, result.blocked, now, result.manual === true, now - sent)
    return { slot, key, lease, ask, reply, end }
  }

  /**
   * A lease request has failed, or its result is unknown.
   *
   * @param alone others of its batch succeeded
   * @returns its key and lease, if they still exist
   */
  failed(ticket: Ticket, now: number, alone: boolean): Pick<Answered<Key>, 'key' | 'lease'> | undefined {
    if (typeof ticket === 'number' || ticket.kind !== 'lease') return undefined
    const key = this.#landed(ticket)
    if (key === undefined) return undefined
    key.report = true
    if (alone) this.#giveUp(key)
    this.want(ticket.slot, now + (alone ? RETRY_ALONE : 0))
    return { key, lease: ticket.lease }
  }

  /** Ends a lease request; returns its key, if that still exists. */
  #landed({ slot, of }: LeaseTicket): Key | undefined {
    const key = this.keys[slot]
    if (key !== of) return undefined
    const { flags } = this.#meter.site.table
    flags[slot] = (flags[slot] as number) & ~IN_FLIGHT
    return key
  }

  /**
   * Allows waiting requests of a key, in their order, as long as there are units.
   *
   * @param take counts units if there are enough
   * @param ordinal the interval in which they are counted, if any
   */
  serve(slot: number, { waiting }: Key, now: number, take: (request: Reservation) => boolean, ordinal?: Ordinal): void {
    for (let served = 0; ; served++) {
      const { first } = waiting
      if (first === undefined) return
      if (served === SERVED_AT_ONCE) {
        this.want(slot, now)
        return
      }
      if (!take(first)) return
      waiting.shift()
      first.answer(true, ordinal)
    }
  }

  /** A request waits for units of the store. */
  wait(key: Key, reservation: Reservation, now: number): void {
    key.waiting.add(reservation)
    this.want(reservation.slot, now, true)
  }

  /** The store is down: a key's waiting requests are decided without it. */
  giveUp(slot: number): void {
    const key = this.keys[slot]
    if (key !== undefined) this.#giveUp(key)
  }

  #giveUp({ waiting }: Key): void {
    for (const request of waiting.takeUnmet(waiting.end, () => true)) request.answer(undefined)
  }

  /** A key is removed: its waiting requests are decided without the store. Returns whether the key had leases. */
  forget(slot: number): boolean {
    const key = this.keys[slot]
    if (key === undefined) return false
    this.keys[slot] = undefined
    this.#giveUp(key)
    return true
  }
}
