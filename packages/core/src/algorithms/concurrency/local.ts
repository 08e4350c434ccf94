import type { Ordinal } from '../../time/intervals.ts'
import { LocalMeter, SWEEP_STEP } from '../local-meter.ts'

/** Number of parts of `maxDuration` by which old slots are found, and the length of the shortest part in milliseconds. */
const PARTS = 64
const SHORTEST_PART = 250
/** How often keys without a request in flight are removed, in milliseconds. */
const TIDY = 5_000
/** Sums of fractional units are inexact: this part of a limit counts as nothing. */
const ROUNDING = 1e-9

/** Slots that were taken in one part of the time. */
interface Part {
  /** When it ended, on the monotonic clock. Infinite while it runs. */
  ended: number
  /** Units in flight. */
  held: number
}

/** Parts so far, of all meters: so a release never matches a part of another meter. */
let parts = 0

/**
 * Requests in flight in this process. A decision has the part of the time in which its slot was taken, and releases one slot of that part:
 * all of them are equally old. For each key:
 *
 *     fields[slot * 3]      units in flight
 *     fields[slot * 3 + 1]  the newest part of the time in which some were taken
 *     fields[slot * 3 + 2]  units taken in it
 *     older[slot]           units by the parts before it
 */
export class LocalSlots extends LocalMeter {
  /** The running part, and earlier ones that still have units in flight, oldest first. */
  readonly #parts = new Map<Ordinal, Part>()
  readonly #older = new Map<number, Map<Ordinal, number>>()
  #running: Part = { ended: Number.NEGATIVE_INFINITY, held: 0 }
  #ordinal = 0 as Ordinal
  #tidyAt = 0

  /** Units in flight, of all keys. */
  get inFlight(): number {
    let sum = 0
    for (const { held } of this.#parts.values()) sum += held
    return sum
  }

  override roll(now: number): void {
    this.rollAt = now + Math.max(SHORTEST_PART, this.site.policy.maxDuration / PARTS)
    if (this.#running.held > 0 || this.#ordinal === 0) this.#begin(now)
  }

  override allows(slot: number, cost: number, now: number): boolean {
    return super.allows(slot, cost, now) || (this.expire(slot, now) && super.allows(slot, cost, now))
  }

  protected override hasCapacity(slot: number, cost: number, limit: number): boolean {
    const held = this.fields[slot * 3] as number
    return held + cost <= limit + limit * ROUNDING && limit > 0
  }

  protected override count(slot: number, cost: number): void {
    const { fields } = this
    const base = slot * 3
    if (fields[base + 1] !== this.#ordinal) this.#moveOn(slot)
    fields[base] = (fields[base] as number) + cost
    fields[base + 2] = (fields[base + 2] as number) + cost
    this.#running.held += cost
  }

  override mark(): number {
    return 0
  }

  override untake(slot: number, _mark: number, cost: number): void {
    this.#release(slot, this.#ordinal, cost)
    this.allowed -= cost
  }

  protected override left(slot: number, limit: number): number {
    return Math.max(0, limit - (this.fields[slot * 3] as number))
  }

  /** The end of a request in flight can't be predicted. */
  protected override wait(): number {
    return 0
  }

  override resetAfterMs(): number {
    return 0
  }

  override usedOf(slot: number): number {
    return this.fields[slot * 3] as number
  }

  protected override idle(slot: number): boolean {
    return this.fields[slot * 3] === 0
  }

  /** The running part of the time. */
  get ordinal(): Ordinal {
    return this.#ordinal
  }

  /** @param ordinal the part of the time that they were taken in */
  override refund(key: string, ordinal: Ordinal, units: number): void {
    this.#release(this.holderOf(key, ordinal), ordinal, units)
  }

  /** The slot with a key's units of a part: its own slot, or the slot that all keys without one share. */
  holderOf(key: string, ordinal: Ordinal): number {
    const slot = this.site.table.find(key)
    return slot >= 0 && this.#heldIn(slot, ordinal) > 0 ? slot : this.site.sharedSlot
  }

  /** Frees the slots immediately. A later release of a slot from before frees none of the new ones. */
  override reset(key: string, slot: number, now: number): void {
    if (slot >= 0) for (const [ordinal, units] of this.#partsOf(slot)) this.#release(slot, ordinal, units)
    super.reset(key, slot, now)
    this.#begin(now)
  }

  override forgotten(slot: number): void {
    this.#older.delete(slot)
  }

  /** Frees slots that are older than `maxDuration`, and removes keys without a request in flight. */
  override sweep(from: number, now: number): number {
    if (from === 0) {
      const [oldest] = this.#parts.values()
      if (now < this.#tidyAt && !(oldest !== undefined && this.#isOver(oldest, now))) return -1
      this.#tidyAt = now + TIDY
    }
    const { table } = this.site
    const to = Math.min(table.end, from + SWEEP_STEP)
    for (let slot = from; slot < to; slot++) if (table.keys[slot] !== undefined) this.expire(slot, now)
    return super.sweep(from, now)
  }

  /** Frees a key's slots that are older than `maxDuration`. Returns whether there were some. */
  expire(slot: number, now: number): boolean {
    const [oldest] = this.#parts.values()
    if (oldest === undefined || !this.#isOver(oldest, now) || !((this.fields[slot * 3] as number) > 0)) return false
    const before = this.fields[slot * 3] as number
    for (const [ordinal, units] of this.#partsOf(slot)) {
      const part = this.#parts.get(ordinal)
      if (part !== undefined && this.#isOver(part, now)) this.#release(slot, ordinal, units)
    }
    const freed = before - (this.fields[slot * 3] as number)
    if (freed > 0) this.site.expired(slot, freed)
    return freed > 0
  }

  #begin(now: number): void {
    this.#running.ended = now
    if (this.#running.held === 0) this.#parts.delete(this.#ordinal)
    this.#ordinal = ++parts as Ordinal
    this.#running = { ended: Number.POSITIVE_INFINITY, held: 0 }
    this.#parts.set(this.#ordinal, this.#running)
    this.site.movedTo(this.#ordinal)
  }

  #isOver({ ended }: Part, now: number): boolean {
    return now - ended >= this.site.policy.maxDuration
  }

  /** Makes the running part the key's newest one. */
  #moveOn(slot: number): void {
    const { fields } = this
    const base = slot * 3
    const units = fields[base + 2] as number
    if (units > 0) {
      const older = this.#older.get(slot)
      if (older === undefined) this.#older.set(slot, new Map([[fields[base + 1] as Ordinal, units]]))
      else older.set(fields[base + 1] as Ordinal, units)
    }
    fields[base + 1] = this.#ordinal
    fields[base + 2] = 0
  }

  /** A key's units by the parts that they were taken in. */
  #partsOf(slot: number): [Ordinal, number][] {
    const { fields } = this
    return [...(this.#older.get(slot) ?? []), [fields[slot * 3 + 1] as Ordinal, fields[slot * 3 + 2] as number]]
  }

  /** A key's units that were taken in a part. */
  #heldIn(slot: number, ordinal: Ordinal): number {
    const { fields } = this
    const newest = fields[slot * 3 + 1] === ordinal
    return newest ? (fields[slot * 3 + 2] as number) : (this.#older.get(slot)?.get(ordinal) ?? 0)
  }

  /** Frees units of a part, at most those in flight. */
  #release(slot: number, ordinal: Ordinal, units: number): void {
    const { fields } = this
    const base = slot * 3
    const held = slot < 0 ? 0 : this.#heldIn(slot, ordinal)
    if (!(held > 0)) return
    const newest = fields[base + 1] === ordinal
    const older = this.#older.get(slot)
    const left = held - units > ROUNDING ? held - units : 0
    const freed = held - left
    if (newest) fields[base + 2] = left
    else if (left > 0) older?.set(ordinal, left)
    else older?.delete(ordinal)
    if (older?.size === 0) this.#older.delete(slot)
    const others = (fields[base] as number) - freed
    fields[base] = others > ROUNDING ? others : 0
    const part = this.#parts.get(ordinal)
    if (part === undefined) return
    part.held = part.held - freed > ROUNDING ? part.held - freed : 0
    if (part.held === 0 && part !== this.#running) this.#parts.delete(ordinal)
  }
}
