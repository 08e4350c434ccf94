import { LATE } from '../algorithms/holds.ts'
import type { Opening } from '../decide/asking.ts'
import type { Costs } from '../decide/costs.ts'
import type { Decision, PolicyDecision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { RequestPath } from '../decide/request-path.ts'
import { boundedOnce } from '../keys/key-text.ts'
import { invalidKey, invalidOption, show, WeirError } from '../report/errors.ts'
import type { Emitter } from '../report/events.ts'
import { MOST_UNITS } from '../store/units.ts'
import type { Clock } from '../time/clock.ts'
import { Timeouts } from '../time/timeouts.ts'
import { checkReserve, type ReservationOptions, type ReserveOptions, type Reserving, reservingOf } from './options.ts'
import { type Ending, OpenReceipt, type Receipt, type Reserved } from './receipt.ts'
import { type SettleHost, settlePart } from './settle.ts'
import type { Holding, HoldingHost } from './store-holds.ts'

/** The most open reservations of a process. Beyond it, the next one to end settles itself. */
const MOST_OPEN = 100_000

/** The throttler whose policies count reservations. */
export interface BudgetHost extends SettleHost, HoldingHost {
  readonly clock: Clock
  readonly emitter: Emitter
  readonly closed: boolean
  readonly path: RequestPath<string>
  /** Whether the store keeps open reservations. Undefined without a store. */
  readonly storeReserves: boolean | undefined
  /** Brings the open reservations to the store. Absent without one. */
  readonly holding: ((host: HoldingHost) => Holding) | undefined
  /** Decides a request that may be delayed. */
  checkDelayed(key: string, cost: Costs): Promise<Decision>
  /** Counts more units of a key, whether or not they fit. */
  chargeOne(limiter: Limiter, key: string, units: number, now: number): void
  /** Releases the slots of a request that has ended. */
  release(decision: Decision): void
  warn(error: WeirError, subject: string): void
}

/** An open or coming reservation with an `id`. */
interface Named {
  readonly cost: Costs
  readonly receipt: OpenReceipt | Promise<OpenReceipt>
}

/** The open reservations of a throttler. */
export class Budget {
  readonly #host: BudgetHost
  /** All open ones. */
  readonly #timeouts: Timeouts<OpenReceipt>
  readonly #named = new Map<string, Named>()
  readonly #holding: Holding | undefined
  #closing = false

  constructor(host: BudgetHost) {
    this.#host = host
    this.#timeouts = new Timeouts(host.clock, (receipt) => this.#expire(receipt))
    this.#holding = host.holding?.(host)
  }

  /** As the throttler's. */
  reserve(key: string, options: ReserveOptions): Receipt {
    const reserving = this.#read('reserve', key, options)
    const by = this.#placed(key, options.cost)
    const { path } = this.#host
    if (path.waits || path.delays) throw mustWait()
    const known = this.#find(key, options)
    // An update may have replaced a policy for which it waits.
    if (known instanceof Promise) throw mustWait()
    if (known !== undefined) return known
    const now = this.#host.clock.monotonic()
    return this.#name(key, options, this.#made(path.checkAt(key, by, now), by, reserving, undefined, now))
  }

  /** As the throttler's. */
  async reserveAsync(key: string, options: ReserveOptions): Promise<Receipt> {
    const reserving = this.#read('reserveAsync', key, options)
    const by = this.#placed(key, options.cost)
    const known = this.#find(key, options)
    if (known !== undefined) return await known
    const receipt = this.#decide(key, by, reserving)
    if (!(receipt instanceof Promise)) return this.#name(key, options, receipt)
    if (options.id === undefined) return await receipt
    const name = nameOf(key, options.id)
    this.#named.set(name, { cost: { ...options.cost }, receipt })
    try {
      return this.#name(key, options, await receipt)
    } catch (error) {
      this.#named.delete(name)
      throw error
    }
  }

  /** Returns a promise only if the request has to wait. */
  #decide(key: string, by: Reserved, reserving: Reserving): OpenReceipt | Promise<OpenReceipt> {
    const { clock, path } = this.#host
    const opening = this.#holding?.opening(reserving)
    const made = (decision: Decision): OpenReceipt => {
      path.tally(decision)
      return this.#made(decision, by, reserving, opening, clock.monotonic())
    }
    const decision = path.delays ? this.#host.checkDelayed(key, costsOf(by)) : path.takeAt(key, by, opening)
    if (!(decision instanceof Promise)) return made(decision)
    return decision.then(made, (error: unknown) => {
      if (opening !== undefined) this.#holding?.drop(opening)
      throw error
    })
  }

  /** Makes a reservation of the units of a decision. */
  receiptOf(decision: Decision, options: ReservationOptions): Receipt {
    const { clock, limiters } = this.#host
    const costs: number[] = []
    const places: number[] = []
    for (const { policy, cost } of decision.parts) {
      const place = limiters.findIndex((limiter) => limiter.policy.id === policy?.id)
      if (place < 0) continue
      places.push(place)
      costs[place] = cost
    }
    return this.#made(decision, { costs, places, limiters }, reservingOf(options), undefined, clock.monotonic())
  }

  #read(call: string, key: unknown, options: ReserveOptions): Reserving {
    if (typeof key !== 'string') throw invalidKey(key)
    checkReserve(call, options)
    return reservingOf(options)
  }

  /** The costs by place. A reservation that is larger than allowed never fits. */
  #placed(key: string, cost: Costs): Reserved {
    const { path, limiters } = this.#host
    const by = path.placed(cost)
    let { costs } = by
    for (const i of by.places) {
      const limiter = limiters[i] as Limiter
      this.checkStore(limiter)
      if (limiter.policy.maxReservation === undefined) continue
      const units = costs[i] as number
      const capped = this.capped(i, key, units)
      if (capped !== units) costs = costs.with(i, capped)
    }
    return { costs, places: by.places, limiters }
  }

  /** @throws WeirError `WEIR_INVALID_OPTION` if the store can't keep open reservations of a policy */
  checkStore(limiter: Limiter): void {
    this.#holding?.check(limiter)
  }

  /** The units to reserve at a policy: more than any limit if its `maxReservation` is exceeded. */
  capped(place: number, key: string, units: number, limit?: number): number {
    const limiter = this.#host.limiters[place] as Limiter
    const { maxReservation } = limiter.policy
    const isTooLarge = maxReservation !== undefined && units > maxReservation
    return isTooLarge && limiter.limitFor(boundedOnce(key), limit) < Number.POSITIVE_INFINITY ? MOST_UNITS : units
  }

  #made(decision: Decision, reserved: Reserved, { ttl, refunds }: Reserving, opening: Opening | undefined, now: number): OpenReceipt {
    const host = this.#host
    const receipt = new OpenReceipt(decision, reserved, this, refunds)
    if (opening !== undefined && !receipt.isOpen) this.#holding?.drop(opening)
    if (!receipt.isOpen || host.closed) return receipt
    this.#timeouts.add(receipt, ttl, now)
    this.#holding?.open(receipt, ttl, opening, now)
    count(reserved, 1)
    // Requests that were waiting when the throttler was closed settle at once, too.
    if (this.#closing) this.close()
    else if (this.#timeouts.size > MOST_OPEN) this.end(this.#timeouts.next as OpenReceipt, 'expired', undefined)
    return receipt
  }

  /** Called by a receipt. */
  used(receipt: OpenReceipt, totals: Costs): void {
    const list = (receipt.totals ??= Object.create(null) as Record<string, number>)
    for (const name in totals) {
      const units = this.#units(receipt, totals, name, 'used')
      if (units !== undefined && !(units <= (list[name] ?? -1))) list[name] = units
    }
    this.#holding?.used(receipt)
  }

  /** Called by a receipt. */
  end(receipt: OpenReceipt, ending: Ending, actual: Costs | undefined): void {
    const host = this.#host
    const numbers: Record<string, number | undefined> = Object.create(null)
    // A getter may throw, and then nothing has changed. It may also settle.
    for (const name in actual) numbers[name] = this.#units(receipt, actual, name, 'settle')
    if (!receipt.isOpen) return
    receipt.isOpen = false
    this.#timeouts.remove(receipt)
    if (receipt.name !== undefined) this.#named.delete(receipt.name)
    if (host.closed) return
    const { decision, totals, refunds, held } = receipt
    const now = host.clock.monotonic()
    count(receipt.reserved, -1, ending)
    let slots = false
    for (const [i, part] of (decision.parts as readonly PolicyDecision[]).entries()) {
      const { policy, cost } = part
      if (policy === undefined) continue
      if (policy.algorithm.slots !== undefined) slots = true
      // A refund may have returned all units.
      if (policy.algorithm.slots !== undefined || !(cost > 0 || held?.[i] !== undefined)) continue
      const otherwise = totals?.[policy.name] ?? (ending === 'expired' && refunds ? 0 : cost)
      const used = ending === 'cancelled' || !(cost > 0) ? 0 : (numbers[policy.name] ?? otherwise)
      settlePart(part, used, held?.[i], now >= receipt.endsAt + LATE, now, host, (...all) => host.chargeOne(...all))
      if (held?.[i] !== undefined) this.#holding?.close(part)
      if (ending === 'expired' && host.emitter.has('reservationExpired'))
        host.emitter.emit('reservationExpired', { policy: policy.name, key: part.key, reserved: cost, counted: used })
    }
    if (slots) host.release(decision)
    this.#holding?.ended(receipt)
    host.emitter.deliver()
  }

  /** Settles all open reservations, because the throttler is closed. */
  close(): void {
    this.#closing = true
    this.#timeouts.close()
    this.#holding?.stop()
  }

  #expire(receipt: OpenReceipt): void {
    const [policy] = receipt.decision.parts.flatMap((part) => (part as PolicyDecision).policy ?? [])
    if (!this.#closing) this.#host.warn(notSettled(policy?.name), 'reserve')
    this.end(receipt, 'expired', undefined)
  }

  /** The units of a policy if they are usable. */
  #units({ reserved }: OpenReceipt, units: Costs, name: string, call: string): number | undefined {
    const given: unknown = units[name]
    if (given === undefined) return undefined
    const isReserved = names(reserved, name)
    if (isReserved && typeof given === 'number' && given >= 0 && given < Number.POSITIVE_INFINITY)
      return Math.min(MOST_UNITS, Math.ceil(given))
    const next = isReserved ? 'Use a whole number of at least 0.' : 'Name the policy in "cost" of reserve().'
    const what = `${call}() got ${show(given)} units of policy ${show(name)}, and ignored them. ${next}`
    this.#host.warn(new WeirError('WEIR_WARN_INVALID_COST', what), `${call} ${name}`)
    return undefined
  }

  // Reservations with an id.

  #find(key: string, { id, cost }: ReserveOptions): OpenReceipt | Promise<OpenReceipt> | undefined {
    const known = id === undefined ? undefined : this.#named.get(nameOf(key, id))
    if (known === undefined) return undefined
    const names = new Set([...Object.keys(known.cost), ...Object.keys(cost)])
    for (const name of names) {
      if (known.cost[name] === cost[name]) continue
      throw invalidOption('cost', cost, `the costs of the open reservation with id ${show(id)}, or another id`)
    }
    return known.receipt
  }

  #name(key: string, { id, cost }: ReserveOptions, receipt: OpenReceipt): OpenReceipt {
    if (id === undefined) return receipt
    const name = nameOf(key, id)
    if (receipt.isOpen) {
      receipt.name = name
      this.#named.set(name, { cost: { ...cost }, receipt })
    } else this.#named.delete(name)
    return receipt
  }
}

function nameOf(key: string, id: string): string {
  return `${id.length} ${id}${boundedOnce(key)}`
}

/** Whether a reservation has units of a policy. Without a closure, because it is called for each report of use. */
function names({ limiters, places }: Reserved, name: string): boolean {
  for (const i of places) if (limiters[i]?.policy.name === name) return true
  return false
}

/** Counts a reservation that was opened, or has ended. */
function count({ limiters, costs, places }: Reserved, sign: 1 | -1, ending?: Ending): void {
  for (const i of places) {
    const { reservations } = (limiters[i] as Limiter).stats
    reservations.open += sign
    reservations.units += sign * (costs[i] as number)
    if (ending !== undefined) reservations[ending]++
  }
}

function costsOf({ limiters, costs, places }: Reserved): Costs {
  return Object.fromEntries(places.map((i) => [(limiters[i] as Limiter).policy.name, costs[i] as number]))
}

function mustWait(): WeirError {
  return new WeirError(
    'WEIR_ASYNC_POLICY',
    'A request of this throttler may have to wait, for the store or for a delay. Use await throttler.reserveAsync(key, options).',
  )
}

function notSettled(name: string | undefined): WeirError {
  return new WeirError(
    'WEIR_WARN_RESERVATION_EXPIRED',
    `A reservation of policy ${show(name)} was not settled before its "ttl", so it settled itself. Call settle() or cancel() in a finally. If calls take longer, raise "ttl".`,
  )
}
