import type { Held, Holds } from '../../algorithms/holds.ts'
import { changeOpen, closeOpen, type Lease } from '../../store/leases/lease.ts'
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
    const lease = this.#leaseOf(key, ordinal, due !== units)
    if (lease !== undefined) changeOpen(lease, end, units - due)
    return lease && held
  }

  /** The store settles only until it receives the next request of this process, which has its own counts. */
  isOpen(): boolean {
    return true
  }

  use(key: string, ordinal: Ordinal, held: Held, used: number): Held {
    const lease = this.#leaseOf(key, ordinal, used !== held.due)
    if (lease !== undefined) changeOpen(lease, held.end, held.due - used)
    return { ...held, due: used }
  }

  settle(key: string, ordinal: Ordinal, held: Held, used: number): boolean {
    const lease = this.#leaseOf(key, ordinal, held.due !== held.units)
    if (lease !== undefined) closeOpen(lease, held, used)
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

  /** The lease of a key, which is reported if it `changes`. Undefined if its interval has ended. */
  #leaseOf(name: string, ordinal: Ordinal, changes: boolean): Lease | undefined {
    const { keys, site } = this.#meter
    const slot = site.table.find(name)
    const key = slot < 0 ? undefined : keys[slot]
    if (key === undefined || key.current.ordinal !== ordinal) return undefined
    if (changes) this.#changed.set(slot, key)
    return key.current
  }
}
