import { newTold, type Told } from './news.ts'
import { NOTHING, type NodeCounts } from './node-counts.ts'

/** What this node has in etcd of a key, as far as it knows. */
export interface Own {
  /** The revision that wrote it; 0 for none. */
  revision: number
  /** What etcd has is not all of it, as it has lost some. */
  behind: boolean
  counts: NodeCounts
  readonly told: Told
  /** Of a bucket: what is folded into its base, and how long its level mattered last. */
  folded: number
  life: number
}

/** Keys that are remembered: of others the node reads first what it has in etcd. */
const MOST = 50_000

/** What this node has in etcd. It is forgotten where there is too much; then a write takes two round trips. */
export class OwnCounts {
  readonly #kept = new Map<string, Own>()

  of(name: string): Own {
    const found = this.#kept.get(name)
    if (found !== undefined) return found
    const own: Own = { revision: 0, behind: false, counts: NOTHING, told: newTold(), folded: -1, life: 0 }
    this.#kept.set(name, own)
    if (this.#kept.size > MOST) this.#kept.delete(this.#kept.keys().next().value as string)
    return own
  }
}
