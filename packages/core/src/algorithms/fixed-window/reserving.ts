import { baseOf, DUE, IN_FLIGHT, KNOWN, SENT, TAG } from '../../keys/key-table.ts'
import { sumOf } from '../../keys/units.ts'
import { STRICT } from '../../report/stats.ts'
import type { SyncEntry, SyncResult } from '../../store/contract.ts'
import type { Reservation } from '../meter.ts'
import type { Batch, Ticket } from '../shared/batch.ts'
import { Reservations } from '../shared/reservations.ts'
import { FixedWindowMeter } from './exchanged.ts'

/** Requests that wait for the store (`strict`): each becomes a conditional increment. */
export abstract class ReservingMeter extends FixedWindowMeter {
  readonly #reservations = new Reservations()

  reserve(reservation: Reservation, now: number): void {
    this.#reservations.add(reservation.slot, reservation)
    this.wantExchange(reservation.slot, now, STRICT)
  }

  /** Conditional increments in a row, each on top of the one before: once one is not granted, none after it is. */
  override collect(slot: number, now: number, batch: Batch): void {
    const flags = this.table.flags[slot] as number
    if (!this.#reservations.has(slot) || (flags & IN_FLIGHT) !== 0) {
      super.collect(slot, now, batch)
      return
    }
    this.table.flags[slot] = (flags & ~DUE) | IN_FLIGHT
    const base = baseOf(slot)
    if (this.table.fields[base + TAG] !== this.tag) this.refresh(slot, now)
    const active = this.activate(slot)
    const { given } = active
    let taken = this.taken(slot, base)
    active.exchange(now, this.unsent(slot, base))
    for (const reservation of this.#reservations.take(slot)) {
      taken = sumOf(taken, reservation.cost)
      const cells = [{ ordinal: this.ordinal, taken, given }]
      this.stats.countExchange(STRICT)
      batch.add(this, reservation, this.entryOf(this.site.idOf(slot), cells, this.site.limitOf(slot)))
    }
    if (taken === this.taken(slot, base)) this.table.flags[slot] = flags & ~(DUE | IN_FLIGHT)
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const cell = entry.cells[0]
    const reply = result.cells[0]
    if (typeof ticket === 'number' || ticket.kind !== 'reservation' || cell === undefined || reply === undefined) {
      super.settle(ticket, entry, result, sent, now)
      if (typeof ticket === 'number' && this.#reservations.has(ticket)) this.wantExchange(ticket, now, STRICT)
      return
    }
    const { slot, cost } = ticket
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~IN_FLIGHT
    if (this.wasReset(entry, result, now)) {
      this.recheck(slot)
      ticket.answer(undefined)
      return
    }
    // This node's own units alone exceed the limit: a store that adds up can't have granted that.
    const possible = cell.taken - cell.given <= (entry.atMost ?? Number.POSITIVE_INFINITY)
    const granted = result.granted && possible
    if (granted) this.admitted += cost
    const base = baseOf(slot)
    if (this.ordinalOf(base) === cell.ordinal) {
      const active = this.activate(slot)
      const fields = this.table.fields
      if (granted) fields[base + KNOWN] = sumOf(fields[base + KNOWN] as number, cost)
      const counted = granted ? cell : { ...cell, taken: fields[base + SENT] as number, given: active.givenSent }
      this.merge(slot, base, counted, reply, sent, now)
    }
    if (result.blocked > 0) this.blockRemotely(slot, result.blocked, now, result.manual === true, now - sent)
    if (granted && ticket.abandoned) this.refund(this.site.keyOf(slot), cell.ordinal, cost, now)
    ticket.answer(granted, cell.ordinal)
    if (this.#reservations.has(slot)) this.wantExchange(slot, now, STRICT)
  }

  override fail(ticket: Ticket, entry: SyncEntry, now: number, alone = false): void {
    if (typeof ticket === 'number' || ticket.kind !== 'reservation') {
      super.fail(ticket, entry, now, alone)
      return
    }
    const { slot, cost } = ticket
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~IN_FLIGHT
    const base = baseOf(slot)
    // The increment may have been applied: take the units and refund them, which is right in either case.
    if (this.ordinalOf(base) === entry.cells[0]?.ordinal) this.activate(slot).given += cost
    this.activate(slot).flight = 0
    this.recheck(slot)
    ticket.answer(undefined)
  }

  override undue(slot: number): void {
    super.undue(slot)
    for (const reservation of this.#reservations.take(slot)) reservation.answer(undefined)
  }
}
