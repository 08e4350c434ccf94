import type { Reservation } from '../algorithms/meter.ts'
import { DUE, IN_FLIGHT } from '../keys/key-table.ts'
import type { SyncEntry, SyncResult } from '../store/contract.ts'
import type { LeaseAsk, LeaseReply } from '../store/leases/ask.ts'
import { askFor, type Lease, type LeaseWish } from '../store/leases/lease.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Batch, LeaseTicket, Ticket } from './batch.ts'
import type { LeasedKey } from './leased-key.ts'
import type { Exchanging, StoreExchange } from './site.ts'

/** An ask without an answer is repeated for requests that wait after so many round trips and milliseconds. */
const LOST_ROUND_TRIPS = 4
/** See `LOST_ROUND_TRIPS`. */
export const LOST_TIME = 10
/** Shortest time from an ask to the next one, but for a request that comes, in milliseconds. */
const SPACING = 1
/** Where a part of the store is away, it is tried again after so many milliseconds. */
const RETRY_ALONE = 200
/** Requests that are answered in one go; each takes some microseconds. */
const SERVED_AT_ONCE = 1_000

let incarnations = 0

/** Whether an ask was made by a limit that is no less than this one, so that its answer holds for requests of this limit too. */
export function askedBy(ask: LeaseAsk, limit: number): boolean {
  return ask.limit >= Math.floor(Math.min(limit, Number.MAX_SAFE_INTEGER))
}

/** Of all leases of this process: no two beginnings of a key's counts are alike to the store. */
export function newIncarnation(): number {
  return ++incarnations
}

/** What the store said to an ask of a key that is still there. */
export interface Answered<Key> {
  readonly slot: number
  readonly key: Key
  readonly lease: Lease
  readonly ask: LeaseAsk
  readonly reply: LeaseReply
  /** Requests with a number below it have asked. */
  readonly end: number
}

/**
 * The asks of a meter that takes units ahead, and the requests that wait for them: when the store is asked, what became of it, and who is
 * told. What is counted, for how much is asked and what an answer means is the meter's.
 */
export class Leasing<Key extends LeasedKey> {
  /** What this node has of each key, by slot. */
  readonly keys: (Key | undefined)[] = []
  readonly #meter: Exchanging
  readonly #exchange: StoreExchange

  constructor(meter: Exchanging, exchange: StoreExchange) {
    this.#meter = meter
    this.#exchange = exchange
  }

  /** Without the store a node goes on with what it holds, and as its policy says. `used`: units of the key that count here. */
  allowsAlone(slot: number, { current }: Key, used: number, cost: number): boolean {
    const { failMode } = this.#meter.policy
    if (failMode === 'open') return true
    if (failMode === 'closed') return false
    const limit = this.#meter.site.limitOf(slot)
    const others = Math.min(current.free, limit) / this.#exchange.nodes
    return used + cost <= Math.min(limit, current.granted - current.returned + others)
  }

  /** Has the store asked at `at`. However much is heard that asks for it, it is not asked at each moment; `urgent`: at once. */
  want(slot: number, at: number, urgent = false): void {
    const { flags } = this.#meter.site.table
    if (((flags[slot] as number) & DUE) !== 0 || !this.#exchange.connected) return
    flags[slot] = (flags[slot] as number) | DUE
    const from = urgent ? Number.NEGATIVE_INFINITY : (this.keys[slot]?.sentAt ?? Number.NEGATIVE_INFINITY) + SPACING
    this.#exchange.due(this.#meter, slot, Number.isNaN(at) ? from : Math.max(at, from))
  }

  /** Tells the store what it lacks of a key, however little it is. */
  tellAll(id: string, now: number): void {
    const slot = this.#meter.site.findId(id)
    const key = slot < 0 ? undefined : this.keys[slot]
    if (key === undefined || !key.unsaid) return
    key.report = true
    this.want(slot, now)
  }

  /** Whether a key may be asked for now: none of its asks is under way, or requests wait for one that is lost. */
  maySend(slot: number, key: Key, now: number): boolean {
    if (((this.#meter.site.table.flags[slot] as number) & IN_FLIGHT) === 0) return true
    return key.waiting.first !== undefined && now >= key.sentAt + this.#lostAfter(key)
  }

  /** Adds an ask to a batch. If its answer is lost, who waits for it is not to wait in vain. */
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

  /** What the store answered; undefined where that is of no use, as it says nothing or the key has been forgotten. */
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
   * An ask has failed, or nobody knows what became of it.
   *
   * @param alone others of its batch have not
   * @returns the key and the lease that it was for, if they are still there
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

  /** An ask has come back; the key that it was for, if it is still there. */
  #landed({ slot, of }: LeaseTicket): Key | undefined {
    const key = this.keys[slot]
    if (key !== of) return undefined
    const { flags } = this.#meter.site.table
    flags[slot] = (flags[slot] as number) & ~IN_FLIGHT
    return key
  }

  /**
   * Lets requests go that wait for a key, in their order, as long as there are units.
   *
   * @param take counts units if they are there
   * @param ordinal the interval that they are counted in, if any
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

  /** The store is away: who waits for a key is decided about without it. */
  giveUp(slot: number): void {
    const key = this.keys[slot]
    if (key !== undefined) this.#giveUp(key)
  }

  #giveUp({ waiting }: Key): void {
    for (const request of waiting.takeUnmet(waiting.end, () => true)) request.answer(undefined)
  }

  /** A key is forgotten; who still waits for it is decided about without the store. Whether anything was known of it. */
  forget(slot: number): boolean {
    const key = this.keys[slot]
    if (key === undefined) return false
    this.keys[slot] = undefined
    this.#giveUp(key)
    return true
  }
}
