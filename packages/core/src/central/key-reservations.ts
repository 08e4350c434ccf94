import type { Verdict } from '../store/contract.ts'

/** Milliseconds for which the store's reply about reservations is valid, because other processes may cancel some later. */
export const TRUST = 1_000

/** The host of a key's reservations, which reaches the store. Times in milliseconds. */
export interface ReservationsHost {
  readonly roundTrip: number
  now(): number
  /** The level of the key's bucket now. Undefined if the store does not reply. */
  look(): Promise<Pick<Verdict, 'resetAfterMs'> | undefined>
  /** Returns the last units of the bucket, which would have been in it until then. */
  giveBack(units: number, until: number, now: number): void
  /** Called when all units that could be returned are returned. */
  done(): void
}

/** Units of cancelled requests, and when they would have been used. */
interface Free {
  readonly usedAt: number
  readonly units: number
}

/** Units of one key that the store has counted ahead for this process. Times are of the monotonic clock. */
export class KeyReservations {
  /** Until when the store's last answer is valid. */
  #trusted = 0
  /** Until when the last of the units stay in the bucket, and how long after their use that is. */
  #end = 0
  #after = 0
  /** When the store last counted units. */
  #toldAt = Number.NEGATIVE_INFINITY
  #free: Free[] = []
  #looking = false

  /** Whether units are being returned. Units counted ahead meanwhile would be behind them, and stop their return. */
  get busy(): boolean {
    return this.#looking
  }

  trusts(now: number): boolean {
    return now < this.#trusted
  }

  /** Takes the time of an answer about the bucket. `own` is until when this process's reservations are used. */
  heard(own: number, now: number): void {
    this.#trusted = Math.max(own, now + TRUST)
  }

  /** Notes that the store has counted units. The last of them stay until `end` and are used at `usedAt`. */
  counted(end: number, usedAt: number, now: number): void {
    this.#end = end
    this.#toldAt = now
    if (usedAt > now) this.#after = end - usedAt
  }

  /**
   * Returns units of a cancelled request. They are returned only if no process has reservations behind them. Otherwise other processes
   * could reserve their time, and together with the reservations behind it exceed the pace.
   *
   * @param each milliseconds between two units
   */
  free(free: Free, each: number, host: ReservationsHost): void {
    const now = host.now()
    this.#trusted = Math.min(this.#trusted, now + TRUST)
    this.#free.push(free)
    if (this.#looking) return
    this.#looking = true
    // If the answer has just come, these units are the bucket's last ones.
    const looked = now === this.#toldAt ? Promise.resolve({ resetAfterMs: this.#end - now }) : host.look().catch(() => undefined)
    // Units that are cancelled at the same moment are returned together.
    void looked.then((verdict) => {
      this.#looking = false
      this.#comeBack(verdict, each, host)
      host.done()
    })
  }

  #comeBack(verdict: Pick<Verdict, 'resetAfterMs'> | undefined, each: number, host: ReservationsHost): void {
    const free = this.#free.sort((a, b) => b.usedAt - a.usedAt)
    this.#free = []
    const now = host.now()
    if (verdict === undefined || now + verdict.resetAfterMs > this.#end + Math.max(each / 2, host.roundTrip)) return
    let back = 0
    for (const { usedAt, units } of free) {
      if (usedAt + this.#after < this.#end - each / 2 - ROUNDED) break
      back += units
      this.#end -= units * each
    }
    if (back > 0) host.giveBack(back, this.#end, now)
  }
}

/** Times are reported in whole milliseconds. */
const ROUNDED = 1
