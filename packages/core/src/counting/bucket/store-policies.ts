import { drainTime } from '../../algorithms/drain-time.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import { MOST_UNITS } from '../../keys/units.ts'
import { BUCKET_PARTS, FINE_PARTS, type StorePolicy } from '../../store/contract.ts'

/** Cells of an interval: what one of them lets run out is what an exchange is off by. None is shorter than `SHORTEST_CELL` ms. */
const CELLS = 1000
const SHORTEST_CELL = 5
/** Limits of keys of their own whose policies are kept. */
const MOST_LIMITS = 100

/** Of a bucket, in cells; see `BUCKET_PARTS`. */
export interface Spans {
  /** How long cells count. */
  readonly span: number
  /** Cells so far apart are sent as one, where the bucket has not run out between them. */
  readonly group: number
  /** Cells so far apart are always sent as one. */
  readonly fine: number
  /** Units that run out in the time of a cell. */
  readonly drain: number
}

/** What the store is told of a bucket: one policy for each limit that keys have. */
export class StorePolicies {
  readonly #site: SharedSite
  readonly #maxDebt: number | undefined
  readonly #width: number
  readonly #cells: number
  readonly #byLimit = new Map<number, StorePolicy>()

  constructor(site: SharedSite, maxDebt: number | undefined) {
    const { interval } = site.policy
    this.#site = site
    this.#maxDebt = maxDebt
    this.#width = Math.max(SHORTEST_CELL, interval / CELLS)
    // One cell is a window to a store.
    this.#cells = Math.max(2, Math.ceil(interval / this.#width))
  }

  /** Of keys with this limit: their buckets run out at another pace. */
  of(limit: number): StorePolicy {
    let policy = this.#byLimit.get(limit)
    if (policy === undefined) {
      if (this.#byLimit.size >= MOST_LIMITS) this.#byLimit.clear()
      this.#byLimit.set(limit, (policy = this.#made(limit)))
    }
    return policy
  }

  /** What buckets hold has changed. */
  forget(): void {
    this.#byLimit.clear()
  }

  spans(limit: number): Spans {
    const cells = this.#cells
    if (limit === 0 || limit === Number.POSITIVE_INFINITY) return { span: cells, group: 1, fine: 1, drain: 0 }
    const drain = drainTime(this.#site.most(limit), limit, this.#site.policy.interval)
    const span = Math.max(1, Math.min(cells, Math.ceil(drain / this.#width)))
    return {
      span,
      group: Math.max(1, Math.floor(span / BUCKET_PARTS)),
      fine: Math.max(1, Math.floor(span / FINE_PARTS)),
      drain: (limit * this.#width) / this.#site.policy.interval,
    }
  }

  #made(limit: number): StorePolicy {
    const { id, interval } = this.#site.policy
    const most = Math.min(MOST_UNITS, this.#site.most(limit))
    return Object.freeze({
      id,
      width: this.#width,
      cells: this.#cells,
      // A store computes with them: no infinity.
      limit: most,
      hot: most / 2,
      ttl: 2 * interval,
      drain: Math.min(MOST_UNITS, (limit * this.#width) / interval),
      ...(this.#maxDebt !== undefined && { maxDebt: this.#maxDebt }),
    })
  }
}
