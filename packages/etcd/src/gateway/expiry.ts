import { EtcdError } from './endpoint.ts'
import type { Link } from './link.ts'
import { readLeaseId } from './replies.ts'

/** Keys share a lease if they end within this part of its length. */
const PARTS = 8
/** Milliseconds. Leases of etcd last whole seconds. */
const SHORTEST = 1_000
/** Ten years, in milliseconds. */
const LONGEST = 315_360_000_000
/** The most leases that are remembered, so that further keys can share them. */
const MOST = 1_000

interface Kept {
  readonly id: Promise<string>
  /** On the monotonic clock. */
  readonly until: number
}

/**
 * Expiry by leases of etcd: each key has one, which is never renewed. Keys that end at about the same time share a lease, because each
 * lease costs etcd a write.
 */
export class Expiry {
  readonly #link: Link
  readonly #kept = new Map<string, Kept>()

  constructor(link: Link) {
    this.#link = link
  }

  /** Returns a lease that lasts for `life` milliseconds, or longer by at most a quarter and three seconds. */
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

  /** Runs a write with leases. If etcd has lost the leases, runs it once more with new ones. */
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
