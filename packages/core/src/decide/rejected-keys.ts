import { Recent } from '../report/recent.ts'
import type { RejectionReason } from '../report/stats.ts'
import type { Limiter } from './limiter.ts'

/** The rejections of one key in this process. */
export interface KeyRejected {
  readonly key: string
  /** The reason of its last rejection, as far as known. */
  readonly reason: RejectionReason
  readonly rejectedLastMinute: number
  /** Since the process's start. */
  readonly rejected: number
  /** Milliseconds since its first and its last rejection. */
  readonly sinceFirstMs: number
  readonly sinceLastMs: number
}

interface Entry {
  reason: RejectionReason
  rejected: number
  readonly lastMinute: Recent
  readonly first: number
  last: number
}

/** Milliseconds between two folds, and the slots of a minute. */
const FOLD = 15_000
const FOLDS = 4
/** The keys of one fold that are kept, the most rejected ones. At most twice as many keys are kept of all folds. */
const MOST = 200
/** Slots that one fold visits, so that it takes about a millisecond. */
const STEP = 1_000_000

/** The keys with their rejections since the process's start, most rejected first. */
export function mostRejected(all: readonly KeyRejected[]): readonly Pick<KeyRejected, 'key' | 'rejected'>[] {
  return all.map(({ key, rejected }) => ({ key, rejected })).sort((a, b) => b.rejected - a.rejected)
}

/**
 * The most rejected keys of a policy. A rejection adds 1 to a number in the key's slot (`KeyTable.rejected`). These numbers are folded into
 * the list every 15 seconds, and whenever the list is read. So the first and the last rejection of a key are known as exactly as that.
 */
export class RejectedKeys {
  readonly #limiter: Limiter
  readonly #entries = new Map<string, Entry>()
  /** The rejections of all keys at the last fold, its time, and the slot at which the next one begins. */
  #sum = 0
  #at: number | undefined
  #from = 0

  constructor(limiter: Limiter) {
    this.#limiter = limiter
  }

  /** Called now and then. */
  tick(now: number): void {
    if (this.#at === undefined || now - this.#at >= FOLD) this.#fold(now)
  }

  /** The kept keys, most rejections in the last minute first. */
  list(now: number): readonly KeyRejected[] {
    this.#fold(now)
    return [...this.#entries]
      .map(([key, { reason, rejected, lastMinute, first, last }]) => ({
        key,
        reason,
        rejectedLastMinute: Math.round(lastMinute.sum(now)),
        rejected,
        sinceFirstMs: now - first,
        sinceLastMs: now - last,
      }))
      .sort((a, b) => b.rejectedLastMinute - a.rejectedLastMinute || a.sinceLastMs - b.sinceLastMs)
  }

  /** A slot is about to get another key. */
  forget(slot: number): void {
    const { rejected } = this.#limiter.table
    const count = rejected[slot] as number
    rejected[slot] = 0
    // Many keys may be forgotten at once, and each new entry may cause a search for the oldest.
    if (count > 0 && this.#entries.size < MOST) this.#add(slot, count, this.#at ?? 0, this.#at ?? 0)
  }

  #fold(now: number): void {
    const from = this.#at ?? now
    this.#at = now
    const { table, stats } = this.#limiter
    const sum = stats.rejected
    if (sum === this.#sum && this.#from === 0) return
    this.#sum = sum
    const { rejected, end } = table
    const to = Math.min(end, this.#from + STEP)
    let most: number[] = []
    let least = 0
    for (let slot = this.#from; slot < to; slot++) {
      if ((rejected[slot] as number) <= least) continue
      most.push(slot)
      if (most.length < 2 * MOST) continue
      most = most.sort((a, b) => (rejected[b] as number) - (rejected[a] as number)).slice(0, MOST)
      least = rejected[most.at(-1) as number] as number
    }
    for (const slot of most.sort((a, b) => (rejected[b] as number) - (rejected[a] as number)).slice(0, MOST)) {
      this.#add(slot, rejected[slot] as number, from, now)
    }
    rejected.fill(0, this.#from, to)
    this.#from = to < end ? to : 0
  }

  #add(slot: number, count: number, from: number, now: number): void {
    const limiter = this.#limiter
    if (limiter.isShared(slot)) return
    const key = limiter.keyOf(slot)
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { reason: 'limit', rejected: 0, lastMinute: new Recent(FOLDS, FOLD), first: from, last: now }
      if (this.#entries.size >= 2 * MOST) this.#drop()
      this.#entries.set(key, entry)
    }
    // A meter explains nothing before it is rolled. Its next fold does.
    if (limiter.meter.rollAt > now) entry.reason = limiter.meter.explain(slot, 1, now).reason
    entry.rejected += count
    entry.lastMinute.add(count, from, now)
    entry.last = now
  }

  /** Drops the keys whose last rejection is oldest. */
  #drop(): void {
    for (const [key] of [...this.#entries].sort(([, a], [, b]) => a.last - b.last).slice(0, MOST)) this.#entries.delete(key)
  }
}
