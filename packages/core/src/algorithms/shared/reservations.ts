import { baseOf, DUE, IN_FLIGHT, KNOWN, SENT, TAG } from '../../keys/key-table.ts'
import { sumOf } from '../../keys/units.ts'
import { STRICT } from '../../report/stats.ts'
import type { SyncEntry, SyncResult } from '../../store/contract.ts'
import type { Reservation } from '../meter.ts'
import { nodesOf } from './active-key.ts'
import type { Batch, EntryOwner, Ticket } from './batch.ts'
import type { WindowMeter } from './window-meter.ts'
import type { WaitingRequests, WindowRule } from './window-rule.ts'

/** A request waits for the store when less than this many units per node are expected to be left. */
const STRICT_TAIL = 2.5

/** Requests to the keys of a meter that wait for the store (`strict`): each becomes a conditional increment. */
export class Reservations implements WaitingRequests, EntryOwner {
  readonly #meter: WindowMeter
  readonly #rule: WindowRule
  /** By slot, in the order in which they came. */
  readonly #waiting = new Map<number, Reservation[]>()

  constructor(meter: WindowMeter, rule: WindowRule) {
    this.#meter = meter
    this.#rule = rule
  }

  get rollAt(): number {
    return this.#meter.rollAt
  }

  roll(now: number): void {
    this.#meter.roll(now)
  }

  /** So little is left that the nodes together could admit too much before they hear of each other. */
  mustAsk(slot: number, now: number): boolean {
    const meter = this.#meter
    const { records } = meter
    if (!meter.policy.strict || !meter.exchange.connected || meter.decidesAlone(slot)) return false
    const base = baseOf(slot)
    const { fields } = meter.table
    if (fields[base + TAG] !== meter.tag) meter.refresh(slot, now)
    const active = records.activeOf(slot)
    const nodes = nodesOf(active, meter.exchange.nodes)
    const others = Math.max(records.unsent(slot, base) * (nodes - 1), active?.expected(now) ?? 0)
    return meter.site.limitOf(slot) - (fields[base + KNOWN] as number) - others < STRICT_TAIL * nodes
  }

  reserve(reservation: Reservation, now: number): void {
    const list = this.#waiting.get(reservation.slot)
    if (list === undefined) this.#waiting.set(reservation.slot, [reservation])
    else list.push(reservation)
    this.#meter.wantExchange(reservation.slot, now, STRICT)
  }

  /** They go in a row, each on top of the one before: once one is not granted, none after it is. */
  collect(slot: number, now: number, batch: Batch): boolean {
    const meter = this.#meter
    const { records, table } = meter
    const flags = table.flags[slot] as number
    if (!this.#waiting.has(slot) || (flags & IN_FLIGHT) !== 0) return false
    table.flags[slot] = (flags & ~DUE) | IN_FLIGHT
    const base = baseOf(slot)
    if (table.fields[base + TAG] !== meter.tag) meter.refresh(slot, now)
    const active = records.activate(slot)
    const { given } = active
    let taken = records.taken(slot, base)
    active.exchange(now, records.unsent(slot, base))
    for (const reservation of this.#take(slot)) {
      taken = sumOf(taken, reservation.cost)
      const cells = [{ ordinal: meter.ordinal, taken, given }]
      meter.stats.countExchange(STRICT)
      batch.add(this, reservation, meter.entryOf(meter.site.idOf(slot), cells, meter.site.limitOf(slot)))
    }
    if (taken === records.taken(slot, base)) table.flags[slot] = flags & ~(DUE | IN_FLIGHT)
    return true
  }

  goOn(slot: number, now: number): void {
    if (this.#waiting.has(slot)) this.#meter.wantExchange(slot, now, STRICT)
  }

  settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const cell = entry.cells[0]
    const reply = result.cells[0]
    if (typeof ticket === 'number' || ticket.kind !== 'reservation' || cell === undefined || reply === undefined) {
      this.fail(ticket, entry)
      return
    }
    const meter = this.#meter
    const { fields, flags } = meter.table
    const { slot, cost } = ticket
    flags[slot] = (flags[slot] as number) & ~IN_FLIGHT
    if (meter.wasReset(entry, result, now)) {
      meter.recheck(slot)
      ticket.answer(undefined)
      return
    }
    // This node's own units alone exceed the limit: a store that adds up can't have granted that.
    const possible = cell.taken - cell.given <= (entry.atMost ?? Number.POSITIVE_INFINITY)
    const granted = result.granted && possible
    if (granted) meter.admitted += cost
    const base = baseOf(slot)
    if (meter.ordinalOf(base) === cell.ordinal) {
      const active = meter.records.activate(slot)
      if (granted) fields[base + KNOWN] = sumOf(fields[base + KNOWN] as number, cost)
      const counted = granted ? cell : { ...cell, taken: fields[base + SENT] as number, given: active.givenSent }
      this.#rule.merge(slot, base, counted, reply, now)
    }
    if (result.blocked > 0) meter.blockRemotely(slot, result.blocked, now, result.manual === true, now - sent)
    if (granted && ticket.abandoned) meter.refund(meter.site.keyOf(slot), cell.ordinal, cost, now)
    ticket.answer(granted, cell.ordinal)
    this.goOn(slot, now)
  }

  fail(ticket: Ticket, entry: SyncEntry): void {
    if (typeof ticket === 'number' || ticket.kind !== 'reservation') return
    const meter = this.#meter
    const { slot, cost } = ticket
    meter.table.flags[slot] = (meter.table.flags[slot] as number) & ~IN_FLIGHT
    const active = meter.records.activate(slot)
    // The increment may have been applied: take the units and refund them, which is right in either case.
    if (meter.ordinalOf(baseOf(slot)) === entry.cells[0]?.ordinal) active.given += cost
    active.flight = 0
    meter.recheck(slot)
    ticket.answer(undefined)
  }

  overdue(): void {}

  undue(slot: number): void {
    for (const reservation of this.#take(slot)) reservation.answer(undefined)
  }

  /** Takes out the requests that are still wanted. */
  #take(slot: number): Reservation[] {
    const list = this.#waiting.get(slot) ?? []
    this.#waiting.delete(slot)
    return list.filter((reservation) => !reservation.abandoned)
  }
}
