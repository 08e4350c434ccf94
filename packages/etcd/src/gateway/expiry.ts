import { EtcdError } from './endpoint.ts'
import type { Link } from './link.ts'
import { readLeaseId } from './replies.ts'

/** A lease is shared by what ends within this part of its own length. */
const PARTS = 8
/** Milliseconds: leases of etcd are of whole seconds. */
const SHORTEST = 1_000
/** Ten years. */
const LONGEST = 315_360_000_000
/** Leases that are remembered, so that what ends with them shares them. */
const MOST = 1_000

interface Kept {
  readonly id: Promise<string>
  /** On the monotonic clock. */
  readonly until: number
}

/**
 * When things end: each key lives under a lease, which is never kept alive. What ends at about the same time shares one, since each costs
 * etcd a write of its own.
 */
export class Expiry {
  readonly #link: Link
  readonly #kept = new Map<string, Kept>()

  constructor(link: Link) {
    this.#link = link
  }

  /** A lease that lasts for `life` milliseconds, and by no more than a quarter and three seconds longer. */
  leaseFor(life: number): Promise<string> {
    const length = Math.min(Math.max(life, SHORTEST), LONGEST)
    const now = this.#link.clock.monotonic()
    const step = Math.max(SHORTEST, 2 ** Math.ceil(Math.log2(length / PARTS)))
    const until = Math.ceil((now + length) / step) * step
    const place = `${step} ${until}`
    const found = this.#kept.get(place)
    if (found !== undefined) return found.id
    for (const [old, kept] of this.#kept) if (kept.until <= now || this.#kept.size >= MOST) this.#kept.delete(old)
    const id = this.#grant(Math.ceil((until - now) / 1000) + 1)
    this.#kept.set(place, { id, until })
    id.catch(() => this.#kept.delete(place))
    return id
  }

  /** Runs what writes under leases; where etcd has lost these, once more. */
  async renewing<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof EtcdError) || !/lease not found/.test(error.message)) throw error
      this.#kept.clear()
      return write()
    }
  }

  async #grant(seconds: number): Promise<string> {
    return readLeaseId(await this.#link.call('/v3/lease/grant', { TTL: String(seconds) }))
  }
}
