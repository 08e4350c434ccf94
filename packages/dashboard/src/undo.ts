import { randomBytes } from 'node:crypto'

/** Milliseconds within which an action can be undone. */
const UNDO_FOR = 10_000
const MOST = 100

interface Offer {
  readonly key: string
  readonly until: number
  readonly run: () => void
}

/** The newest actions that can still be undone. */
export class Undo {
  readonly #offers = new Map<string, Offer>()

  /** Returns the id of an offer. `now` is in milliseconds since the Unix epoch. */
  offer(key: string, run: () => void, now: number): string {
    for (const [id, { until }] of this.#offers) if (until <= now || this.#offers.size >= MOST) this.#offers.delete(id)
    const id = randomBytes(12).toString('base64url')
    this.#offers.set(id, { key, until: now + UNDO_FOR, run })
    return id
  }

  /** The offer, once, for the key that it was made for. Undefined if it has expired. */
  take(id: string, key: string, now: number): Offer | undefined {
    const offer = this.#offers.get(id)
    if (offer === undefined || offer.key !== key) return undefined
    this.#offers.delete(id)
    return offer.until > now ? offer : undefined
  }
}
