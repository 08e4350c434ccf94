import type { Ordinal } from '../../time/intervals.ts'

/** A request that waits for the store to say whether its units still fit. */
export interface Reservation {
  readonly slot: number
  readonly cost: number
  /** Told once: whether the store applied the increment, undefined when that is not known; and in which interval. */
  answer(granted: boolean | undefined, ordinal?: Ordinal): void
  /** Nobody waits any more. */
  abandoned: boolean
}

/** Waiting requests by slot, in the order in which they came. */
export class Reservations {
  readonly #waiting = new Map<number, Reservation[]>()

  get size(): number {
    return this.#waiting.size
  }

  add(slot: number, reservation: Reservation): void {
    const list = this.#waiting.get(slot)
    if (list === undefined) this.#waiting.set(slot, [reservation])
    else list.push(reservation)
  }

  has(slot: number): boolean {
    return this.#waiting.has(slot)
  }

  /** Takes those out that are to be sent now. */
  take(slot: number): Reservation[] {
    const list = this.#waiting.get(slot)
    if (list === undefined) return []
    this.#waiting.delete(slot)
    return list.filter((reservation) => !reservation.abandoned)
  }
}
