import type { Held, Holds } from '../../algorithms/holds.ts'
import { changeOpen, type Lease } from '../../store/leases/lease.ts'
import { intervalOf } from '../../time/calendar.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { CountsSynced, StoreExchange } from '../site.ts'
import type { LeasedKey } from './leased-key.ts'
import type { Leasing } from './leasing.ts'

/** Reservations of one ttl end at this many different times within it, at most. The times are rounded up, so that requests stay small. */
const ENDS = 16

interface HoldingMeter extends CountsSynced {
  /** By slot. */
  readonly keys: readonly (LeasedKey | undefined)[]
  readonly leasing: Pick<Leasing<LeasedKey>, 'want'>
}

/**
 * Open reservations of units that a process took ahead. The store settles them if the process is silent for its lifetime after their end.
 * It needs only the sum of the units that return at a time, so a request for a lease contains few numbers, however many are open.
 */
export class LeaseHolds implements Holds {
  readonly #meter: HoldingMeter
  readonly #store: StoreExchange
  /** Keys whose open reservations have changed since the last `flush`, by slot. */
  readonly #changed = new Map<number, LeasedKey>()

  constructor(meter: HoldingMeter, store: StoreExchange) {
    this.#meter = meter
    this.#store = store
  }

  open(key: string, ordinal: Ordinal, { id, units, due }: Pick<Held, 'id' | 'units' | 'due'>, ttl: number, now: number): Held | undefined {
    const { site } = this.#meter
    const step = 2 ** Math.floor(Math.log2(Math.max(1, ttl) / ENDS))
    const end = Math.ceil((this.#store.time.at(now) + ttl + this.#store.lifetime) / step) * step
    // After the interval, nothing returns.
    if (end >= intervalOf(ordinal, site.policy).end) return undefined
    const held = { id, end, units, due }
    return this.#change(key, ordinal, end, units - due) ? held : undefined
  }

  isOpen({ end }: Held, now: number): boolean {
    return this.#store.time.at(now) < end
  }

  use(key: string, ordinal: Ordinal, held: Held, used: number): Held {
    this.#change(key, ordinal, held.end, held.due - used)
    return { ...held, due: used }
  }

  settle(key: string, ordinal: Ordinal, { end, units, due }: Held, used: number, expired: boolean): boolean {
    const lease = this.#change(key, ordinal, end, due - units)
    // The store may have returned these units already, so this process must not use them again.
    if (lease && expired && used < units) lease.returned += units - used
    return false
  }

  flush(now: number): void {
    if (this.#changed.size === 0) return
    const { keys, leasing } = this.#meter
    for (const [slot, key] of this.#changed) {
      if (keys[slot] !== key) continue
      key.report = true
      leasing.want(slot, now)
    }
    this.#changed.clear()
  }

  /** Changes the units that return at `end`. Returns the lease, or undefined if its interval has ended. */
  #change(name: string, ordinal: Ordinal, end: number, back: number): Lease | undefined {
    const { keys, site } = this.#meter
    const slot = site.table.find(name)
    const key = slot < 0 ? undefined : keys[slot]
    if (key === undefined || key.current.ordinal !== ordinal) return undefined
    if (back !== 0) {
      changeOpen(key.current, end, back)
      this.#changed.set(slot, key)
    }
    return key.current
  }
}
