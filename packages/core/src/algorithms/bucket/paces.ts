import type { MeterSite } from '../meter.ts'
import { filling, inForce, paceOf } from './step.ts'

/** The limits at which keys' buckets drain, if requests bring limits of their own. */
export class Paces {
  readonly #site: MeterSite
  /** As `own` in the state of `BUCKET_STEP`. */
  readonly #own = new Map<number, number>()

  constructor(site: MeterSite) {
    this.#site = site
  }

  of(slot: number): number {
    const limit = this.#site.limitOf(slot)
    return this.#site.limited ? paceOf(this.#own.get(slot), limit, this.#site.usualOf(slot)) : limit
  }

  /** Units by which a request fills a bucket. */
  filling(slot: number, units: number, level: number): number {
    const limit = this.#site.limitOf(slot)
    if (limit < Number.POSITIVE_INFINITY) return units
    const usual = this.#site.usualOf(slot)
    return filling(units, level, limit, this.#site.most(usual), usual)
  }

  /**
   * Notes a decision about a request with the limit that the key has now.
   *
   * @param level units in the bucket before it
   */
  asked(slot: number, level: number): void {
    if (!this.#site.limited) return
    const own = inForce(this.#own.get(slot), level, this.#site.limitOf(slot), this.#site.usualOf(slot))
    if (own === undefined) this.#own.delete(slot)
    else this.#own.set(slot, own)
  }

  /** The limit of some key has changed. While no key has a limit of its own, nothing is noted. */
  recheck(): void {
    if (!this.#site.limited) this.#own.clear()
  }

  forget(slot: number): void {
    this.#own.delete(slot)
  }
}
