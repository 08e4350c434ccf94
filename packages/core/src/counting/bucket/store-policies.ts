import { drainTime } from '../../algorithms/drain-time.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import { BUCKET_PARTS, FINE_PARTS, type StorePolicy } from '../../store/contract.ts'
import { MOST_UNITS } from '../../store/units.ts'

/** Cells of an interval. A sync is wrong by the units that drain during one of them. None is shorter than `SHORTEST_CELL` ms. */
const CELLS = 1000
const SHORTEST_CELL = 5
/** Limits of keys of their own whose policies are cached. */
const MOST_LIMITS = 100

/** The time scales of a bucket, in cells. See `BUCKET_PARTS`. */
export interface Spans {
  /** How long cells count. */
  readonly span: number
  /** Cells less than this far apart are sent as one, if the bucket has not emptied between them. */
  readonly group: number
  /** Cells less than this far apart are always sent as one. */
  readonly fine: number
  /** Units that drain during a cell. */
  readonly drain: number
}

/** A bucket's policies in the store: one for each limit that keys have. */
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
    // A store takes a single cell for a window.
    this.#cells = Math.max(2, Math.ceil(interval / this.#width))
  }

  /** The policy of keys with this limit, because their buckets drain at another pace. */
  of(limit: number): StorePolicy {
    let policy = this.#byLimit.get(limit)
    if (policy === undefined) {
      if (this.#byLimit.size >= MOST_LIMITS) this.#byLimit.clear()
      this.#byLimit.set(limit, (policy = this.#made(limit)))
    }
    return policy
  }

  /** The capacity of buckets has changed. */
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
      // A store computes with these numbers, so none is infinite.
      limit: most,
      hot: most / 2,
      ttl: 2 * interval,
      drain: Math.min(MOST_UNITS, (limit * this.#width) / interval),
      ...(this.#maxDebt !== undefined && { maxDebt: this.#maxDebt }),
    })
  }
}
