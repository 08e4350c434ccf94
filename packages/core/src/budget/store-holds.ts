import type { Held, Holds } from '../algorithms/holds.ts'
import type { Opening } from '../decide/asking.ts'
import { waitsForStore } from '../decide/coordination.ts'
import type { PolicyDecision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import { idOfKey } from '../keys/key-id.ts'
import { show, WeirError } from '../report/errors.ts'
import { Alarm } from '../time/alarm.ts'
import type { Clock } from '../time/clock.ts'
import type { Reserving } from './options.ts'
import type { OpenReceipt } from './receipt.ts'

/** Milliseconds after which reported use is sent to the store. */
const PACE = 1_000
/** Reservations whose use is sent in one turn of the event loop. */
const SLICE = 500

/** The throttler whose reservations the store keeps. */
export interface HoldingHost {
  readonly clock: Clock
  readonly random: () => number
  readonly limiters: readonly Limiter[]
  /** Whether the store keeps open reservations. Undefined without a store. */
  readonly storeReserves: boolean | undefined
}

/** Keeps the open reservations of a throttler at its store. A store brings the code, so that a throttler without one carries none of it. */
export interface Holding {
  /** @throws WeirError `WEIR_INVALID_OPTION` if the store can't keep open reservations of a policy */
  check(limiter: Limiter): void
  /** A reservation that the store may open while it counts the request. */
  opening(reserving: Reserving): Opening
  /** Forgets reservations of a request that was not allowed. */
  drop(opening: Opening): void
  /** Opens a reservation at the store, for policies whose units another process can settle. */
  open(receipt: OpenReceipt, ttl: number, opening: Opening | undefined, now: number): void
  /** Sends the totals of a receipt soon. */
  used(receipt: OpenReceipt): void
  /** Sends no more totals of a receipt, because it has ended. */
  ended(receipt: OpenReceipt): void
  /** Closes the reservation of one part of an ended receipt. */
  close(part: PolicyDecision): void
  /** Sends the changes now, because the throttler is closed. */
  stop(): void
}

/** Keeps the open reservations of a throttler at its store, so that it can settle them if this process dies. */
export class StoreHolds implements Holding {
  readonly #host: HoldingHost
  /** Reservations whose last reported use the store doesn't have. */
  readonly #unsent = new Set<OpenReceipt>()
  readonly #alarm: Alarm

  constructor(host: HoldingHost) {
    this.#host = host
    this.#alarm = new Alarm(host.clock, () => this.#send())
  }

  check({ policy }: Limiter): void {
    if (this.#host.storeReserves === false && waitsForStore(policy) && policy.algorithm.slots === undefined) throw cantKeep(policy.name)
  }

  opening({ ttl, refunds }: Reserving): Opening {
    return { id: this.#id(), ttl, refunds, opened: new Map() }
  }

  drop({ opened }: Opening): void {
    for (const [id, { key }] of opened) this.#holdsOf(id)?.ended?.(key)
  }

  open(receipt: OpenReceipt, ttl: number, opening: Opening | undefined, now: number): void {
    if (this.#host.limiters.every(({ meter }) => meter.holds === undefined)) return
    const parts = receipt.decision.parts as readonly PolicyDecision[]
    const id = opening?.id ?? this.#id()
    receipt.held = parts.map((part) => {
      const { policy, key, cost: units, ordinal } = part
      const opened = policy && opening?.opened.get(policy.id)?.held
      if (opened !== undefined || !(units > 0)) return opened
      return this.#holdsOf(policy?.id)?.open(key, ordinal, { id, units, due: receipt.refunds ? 0 : units }, ttl, now)
    })
    this.#alarm.setBy(now + PACE)
  }

  used(receipt: OpenReceipt): void {
    if (receipt.held === undefined) return
    this.#unsent.add(receipt)
    this.#alarm.setBy(this.#host.clock.monotonic() + PACE)
  }

  ended(receipt: OpenReceipt): void {
    this.#unsent.delete(receipt)
    if (receipt.held !== undefined) this.#alarm.setBy(this.#host.clock.monotonic() + PACE)
  }

  close({ policy, key }: PolicyDecision): void {
    this.#holdsOf(policy?.id)?.ended?.(key)
  }

  stop(): void {
    this.#alarm.stop()
    this.#flush()
  }

  #holdsOf(policy: string | undefined): Holds | undefined {
    return this.#host.limiters.find(({ policy: { id } }) => id === policy)?.meter.holds
  }

  /** A random whole number of 52 bits. */
  #id(): number {
    return 1 + Math.floor(this.#host.random() * (2 ** 52 - 1))
  }

  /** Sends the use that was reported since the last time. */
  #send(): void {
    const { clock } = this.#host
    let left = SLICE
    const again: OpenReceipt[] = []
    for (const receipt of this.#unsent) {
      if (left-- === 0) break
      this.#unsent.delete(receipt)
      if (!this.#report(receipt, clock.monotonic())) again.push(receipt)
    }
    for (const receipt of again) this.#unsent.add(receipt)
    this.#flush()
    // During an outage nothing can be sent, however often it is tried.
    if (this.#unsent.size > 0) this.#alarm.setBy(clock.monotonic() + (left < 0 && again.length === 0 ? 1 : PACE))
  }

  /** Returns whether the store has all numbers now. */
  #report({ decision, held, totals }: OpenReceipt, now: number): boolean {
    const { limiters } = this.#host
    let sent = true
    for (const [i, part] of (decision.parts as readonly PolicyDecision[]).entries()) {
      const one: Held | undefined = held?.[i]
      const used = totals?.[part.policy?.name ?? '']
      const limiter = limiters.find(({ policy }) => policy.id === part.policy?.id)
      const holds = limiter?.meter.holds
      if (one === undefined || holds === undefined || used === undefined) continue
      // As for a settlement, the store does not know of refunds.
      const due = used + one.units - part.cost
      if (due === one.due) continue
      // A reset has closed it at the store.
      if (!holds.isOpen(one, now) || limiter?.resets.since(idOfKey(part.key), part.serial) === true) continue
      const next = holds.use(part.key, part.ordinal, one, due, now)
      ;(held as (Held | undefined)[])[i] = next
      if (next === one) sent = false
    }
    return sent
  }

  #flush(): void {
    const now = this.#host.clock.monotonic()
    for (const { meter } of this.#host.limiters) meter.holds?.flush?.(now)
  }
}

function cantKeep(name: string): WeirError {
  return new WeirError(
    'WEIR_INVALID_OPTION',
    `The store can't keep open reservations, which policy ${show(name)} needs. Use another store, or coordination "background".`,
  )
}
