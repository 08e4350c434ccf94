import type { Meter, MeterSite } from '../algorithms/meter.ts'
import { Recent } from '../report/recent.ts'
import type { RejectionReason } from '../report/stats.ts'

/** The parts of the limiter that the list needs. */
interface Site extends Pick<MeterSite, 'isShared' | 'keyOf' | 'stats' | 'table'> {
  readonly meter: Meter
}

/** The rejections of one key in this process. Times are on the monotonic clock. */
export interface RejectedKey {
  /** The reason of its last rejection, as far as known. */
  reason: RejectionReason
  /** Since the process's start. */
  rejected: number
  readonly lastMinute: Recent
  readonly first: number
  last: number
}

/** Milliseconds between two folds, and the folds of a minute. */
const FOLD = 15_000
const FOLDS = 4
/** The keys of one fold that are kept, the most rejected ones. At most twice as many keys are kept of all folds. */
const MOST = 200
/** Slots that one fold visits, so that it takes about a millisecond. */
const STEP = 400_000

/**
 * The most rejected keys of a policy. A rejection adds 1 to a number in the key's slot (`KeyTable.rejected`). These numbers are folded into
 * the list every 15 seconds, and whenever the list is read. So the first and the last rejection of a key are known as exactly as that. In a
 * larger table than one fold visits, they may be one round of folds earlier.
 */
export class RejectedKeys {
  readonly #site: Site
  /** The key whose last rejection is oldest comes first. */
  readonly #keys = new Map<string, RejectedKey>()
  /** The rejections of all keys at the last fold, its time, and the slot at which the next one begins. */
  #sum = 0
  #at: number | undefined
  #from = 0

  constructor(site: Site) {
    this.#site = site
  }

  /** Called now and then. */
  tick(now: number): void {
    if (this.#at === undefined || now - this.#at >= FOLD) this.read(now)
  }

  /** A slot is about to get another key. */
  forget(slot: number): void {
    const { rejected } = this.#site.table
    if ((rejected[slot] as number) > 0) this.#add(slot, this.#at ?? 0, this.#at ?? 0)
  }

  /** The kept keys. */
  read(now: number): ReadonlyMap<string, RejectedKey> {
    const from = this.#at ?? now
    this.#at = now
    const { table, stats } = this.#site
    const sum = stats.rejected
    if (sum === this.#sum && this.#from === 0) return this.#keys
    this.#sum = sum
    const { rejected, end } = table
    const to = Math.min(end, this.#from + STEP)
    let most: number[] = []
    const shorten = () => {
      most = most.sort((a, b) => (rejected[b] as number) - (rejected[a] as number)).slice(0, MOST)
    }
    let least = 0
    for (let slot = this.#from; slot < to; slot++) {
      if ((rejected[slot] as number) <= least) continue
      most.push(slot)
      if (most.length < 2 * MOST) continue
      shorten()
      least = rejected[most.at(-1) as number] as number
    }
    shorten()
    for (const slot of most) this.#add(slot, from, now)
    rejected.fill(0, this.#from, to)
    this.#from = to < end ? to : 0
    return this.#keys
  }

  #add(slot: number, from: number, now: number): void {
    const { table, meter } = this.#site
    if (this.#site.isShared(slot)) return
    const count = table.rejected[slot] as number
    table.rejected[slot] = 0
    const key = this.#site.keyOf(slot)
    const one = this.#keys.get(key) ?? { reason: 'limit', rejected: 0, lastMinute: new Recent(FOLDS, FOLD), first: from, last: now }
    // A meter explains nothing before it is rolled. The next fold does it.
    if (meter.rollAt > now) one.reason = meter.explain(slot, 1, now).reason
    one.rejected += count
    one.lastMinute.add(count, from, now)
    one.last = now
    this.#keys.delete(key)
    this.#keys.set(key, one)
    for (const oldest of this.#keys.keys()) {
      if (this.#keys.size <= 2 * MOST) break
      this.#keys.delete(oldest)
    }
  }
}
