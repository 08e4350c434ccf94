import type { Reservation } from '../meter.ts'

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

  /** Takes out the requests that are to be sent now. */
  take(slot: number): Reservation[] {
    const list = this.#waiting.get(slot)
    if (list === undefined) return []
    this.#waiting.delete(slot)
    return list.filter((reservation) => !reservation.abandoned)
  }
}
