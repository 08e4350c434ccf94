import { type Held, type Holds, LATE } from '../algorithms/holds.ts'
import type { Opening } from '../decide/asking.ts'
import { MOST_OPEN, type Question } from '../store/contract.ts'
import type { EpochTime, Ordinal } from '../time/intervals.ts'

/** The policy's meter. */
interface HoldingMeter {
  readonly time: EpochTime
  /** Whether requests are decided without the store now. */
  readonly alone: boolean
  ask(kind: Question['kind'], key: string, slot: number, units: number, at: number): Question
  tell(question: Question): void
  /** When units that were taken now have certainly left the count, by the store's time. */
  endOf(at: number): number
  /** The time of the units of an interval or bucket, by the store's time. */
  timeOf(ordinal: Ordinal, now: number): number
  /** The key's id in the store, and its slot. */
  placed(key: string): { readonly id: string; readonly slot: number }
  /** Counts more units of a key here, or fewer. */
  change(key: string, ordinal: Ordinal, more: number, now: number): void
}

/** Open reservations of a policy whose requests the store decides. The store settles them in the step of the key's next request. */
export class CentralHolds implements Holds {
  readonly #meter: HoldingMeter
  /** The number of open reservations of this process, by key. */
  readonly #open = new Map<string, number>()

  constructor(meter: HoldingMeter) {
    this.#meter = meter
  }

  /** The reservation that a request opens. Undefined if the store would not keep it, so that it could not be settled there. */
  opening(key: string, { id, ttl, refunds }: Pick<Opening, 'id' | 'ttl' | 'refunds'>, units: number, at: number): Held | undefined {
    const open = this.#open.get(key) ?? 0
    if (open >= MOST_OPEN) return undefined
    this.#open.set(key, open + 1)
    return { id, end: Math.min(at + ttl + LATE, this.#meter.endOf(at)), units, due: refunds ? 0 : units }
  }

  open(key: string, ordinal: Ordinal, { id, units, due }: Pick<Held, 'id' | 'units' | 'due'>, ttl: number, now: number): Held | undefined {
    // Units that were allowed without the store are reported later, and not by request.
    if (this.#meter.alone) return undefined
    const opened = this.opening(key, { id, ttl, refunds: due === 0 }, units, this.#meter.time.at(now))
    if (opened === undefined) return undefined
    const held = { ...opened, due }
    this.#tell('add', key, ordinal, held, 0, now)
    return held
  }

  isOpen({ end }: Held, now: number): boolean {
    return this.#meter.time.at(now) < end
  }

  use(key: string, ordinal: Ordinal, held: Held, used: number, now: number): Held {
    // An outage may be long, and reports would pile up.
    if (this.#meter.alone) return held
    const next = { ...held, due: used }
    this.#tell('use', key, ordinal, next, used, now)
    return next
  }

  settle(key: string, ordinal: Ordinal, held: Held, used: number, now: number): boolean {
    this.#meter.change(key, ordinal, used - held.units, now)
    this.#tell('settle', key, ordinal, held, used, now)
    return true
  }

  ended(key: string): void {
    const left = (this.#open.get(key) ?? 0) - 1
    if (left > 0) this.#open.set(key, left)
    else this.#open.delete(key)
  }

  #tell(kind: Question['kind'], key: string, ordinal: Ordinal, reservation: Held, units: number, now: number): void {
    const meter = this.#meter
    const { id, slot } = meter.placed(key)
    meter.tell({ ...meter.ask(kind, id, slot, units, meter.timeOf(ordinal, now)), reservation })
  }
}
