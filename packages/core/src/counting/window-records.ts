import { ACTIVE, baseOf, GATE, IN_FLIGHT, type KeyTable, KNOWN, OTHERS, SENT, TAG } from '../keys/key-table.ts'
import { SlotMap } from '../keys/slot-map.ts'
import { MOST_UNITS, sumOf } from '../store/units.ts'
import type { Ordinal } from '../time/intervals.ts'
import { Active } from './active-key.ts'
import { mostOthers } from './estimate.ts'
import type { GatedMeter } from './gated-meter.ts'
import { LateCounts } from './late-counts.ts'
import type { WindowRule } from './window-rule.ts'

/** Idle intervals after which a key is removed: its share and rate are useful for one interval more. */
export const IDLE_INTERVALS = 2
/** Milliseconds for which counts of ended intervals are kept at least: an event loop may be blocked for seconds. */
const KEEP_LATE = 10_000
/** And the most that are kept while the store is down, beside one for each key of the table: the oldest interval is dropped. */
const MOST_LATE = 100_000

/** The state of each key in the running interval, and unsent counts of ended ones. */
export class WindowRecords {
  readonly late: LateCounts = new LateCounts()
  readonly #meter: GatedMeter
  readonly #table: KeyTable
  readonly #rule: () => Pick<WindowRule, 'quiet' | 'left'>
  readonly #actives: SlotMap<Active> = new SlotMap()

  constructor(meter: GatedMeter, rule: () => Pick<WindowRule, 'quiet' | 'left'>) {
    this.#meter = meter
    this.#table = meter.table
    this.#rule = rule
  }

  /**
   * Moves a record to the running interval. Its unsent counts are kept, to be sent with their ordinal.
   *
   * @param begun when the running interval began, on the monotonic clock
   */
  refresh(slot: number, begun: number): void {
    const base = baseOf(slot)
    const { fields } = this.#table
    const { ordinal: running, tag } = this.#meter
    const before = this.#meter.ordinalOf(base)
    if (before > running) {
      // A clock that was ahead counted these units (see `adoptTime`): they count now.
      fields[base + KNOWN] = this.own(base)
      fields[base + OTHERS] = 0
    } else if (before < running) {
      if (before > 0) this.leave(slot, base, before)
      fields[base + KNOWN] = 0
      fields[base + OTHERS] = 0
      fields[base + SENT] = 0
      this.find(slot)?.nextInterval(begun)
    }
    if (before !== running && this.late.has(running)) this.#countAgain(slot, base)
    // The key may have been full of units that no longer count.
    fields[base + GATE] = Number.NEGATIVE_INFINITY
    fields[base + TAG] = tag
  }

  /** Takes back late counts of an interval that has not ended after all: a clock was ahead. */
  #countAgain(slot: number, base: number): void {
    const { ordinal, site } = this.#meter
    const late = this.late.remove(site.keyOf(slot), ordinal)
    if (late === undefined) return
    this.#table.fields[base + KNOWN] = sumOf(this.#table.fields[base + KNOWN] as number, late.taken - late.given)
    if (late.given > 0) this.give(slot, late.given)
  }

  /** The oldest interval whose late counts are worth sending: the store has removed earlier ones, or will soon. */
  get oldestLate(): Ordinal {
    return (this.#meter.ordinal - Math.max(IDLE_INTERVALS, Math.ceil(KEEP_LATE / this.#meter.policy.interval))) as Ordinal
  }

  /** The interval of a record has ended. */
  leave(slot: number, base: number, ordinal: Ordinal): void {
    const { site } = this.#meter
    const active = this.find(slot)
    const given = active?.given ?? 0
    const unsent = this.unsent(slot, base)
    const quiet = unsent <= 0 || this.#rule().quiet(slot, base, unsent)
    if ((!quiet || given > (active?.givenSent ?? 0)) && ordinal >= this.oldestLate) {
      // No walk prunes them while a store has never answered, or hangs.
      if (!this.late.has(ordinal)) this.late.prune(this.oldestLate)
      this.late.add(site.keyOf(slot), site.idOf(slot), ordinal, this.taken(slot, base), given)
      this.late.limit(MOST_LATE + this.#table.size)
    }
    this.#rule().left?.(slot, base, ordinal)
  }

  /** Own net units of the record's interval. */
  own(base: number): number {
    const { fields } = this.#table
    // After refunds of fractions, rounding may make the difference a little too small.
    return Math.max(0, (fields[base + KNOWN] as number) - (fields[base + OTHERS] as number))
  }

  /** Own units taken in the record's interval. Refunds are not subtracted. */
  taken(slot: number, base: number): number {
    return sumOf(this.own(base), this.find(slot)?.given ?? 0)
  }

  /** Own units taken that the store has not acknowledged, those in flight included. */
  unsent(slot: number, base: number): number {
    return this.taken(slot, base) - (this.#table.fields[base + SENT] as number)
  }

  find(slot: number): Active | undefined {
    return ((this.#table.flags[slot] as number) & ACTIVE) === 0 ? undefined : this.#actives.get(slot)
  }

  at(slot: number): Active {
    let active = this.find(slot)
    if (active === undefined) {
      active = new Active()
      const { fields, flags } = this.#table
      // For a key without side state, the units in flight were not stored: at most all that are not acknowledged.
      if (((flags[slot] as number) & IN_FLIGHT) !== 0) {
        const base = baseOf(slot)
        active.flight = this.own(base) - (fields[base + SENT] as number)
      }
      this.#actives.set(slot, active)
      flags[slot] = (flags[slot] as number) | ACTIVE
    }
    return active
  }

  /** The key of a slot is removed. */
  forgotten(slot: number): void {
    this.#actives.delete(slot)
  }

  /** Notes refunded units. The caller updates KNOWN. */
  give(slot: number, units: number): void {
    const active = this.at(slot)
    active.given = sumOf(active.given, units)
  }

  /** Takes over the others' units from a source that is never too high, but may be too low. */
  raiseOthers(base: number, others: number): void {
    if (others > (this.#table.fields[base + OTHERS] as number)) this.setOthers(base, others)
  }

  /** Takes over the others' units. */
  setOthers(base: number, told: number): void {
    const { fields } = this.#table
    const others = Math.min(told, mostOthers(this.#meter.policy.limit))
    const own = this.own(base)
    const counted = Math.min(others, MOST_UNITS - own)
    fields[base + OTHERS] = counted
    fields[base + KNOWN] = counted + own
    fields[base + GATE] = Number.NEGATIVE_INFINITY
  }
}
