import type { Limiter } from '../decide/limiter.ts'

/** A key and its units in the cluster, as far as this process knows. */
export interface Usage {
  readonly slot: number
  readonly used: number
}

/** The results of a walk over a policy's keys. If a table takes several walks, the newest result of each part. */
export interface Findings {
  /** The most used keys, most used first. */
  readonly top: readonly Usage[]
  /** Own units that the store has not acknowledged. */
  readonly unsynced: number
  /** Units of leases that this process keeps ahead of requests. */
  readonly held: number
  /** Milliseconds since the oldest unsynced unit may have been counted, without keys far below their limit. 0 if there is none. */
  readonly age: number
  /** The most by which any key may exceed its limit, as a part of the limit, if all processes have as many unsent units as this one. */
  readonly overshoot: number
  /** The most units by which a key's bucket exceeds its size. 0 for other algorithms. */
  readonly debt: number
  /** Own units and the cluster's, of keys that were synced. */
  readonly own: number
  readonly known: number
}

interface Part {
  unsynced: number
  held: number
  since: number
  overshoot: number
  debt: number
  own: number
  known: number
}

/**
 * Walks over a policy's keys for `snapshot`, a bounded number at a time. One walk takes two or three milliseconds however many keys there
 * are, and the most used keys are carried from walk to walk. The request path keeps nothing for it.
 */
export class Survey {
  readonly #limiter: Limiter
  #parts: Part[] = []
  #next = 0
  #top: readonly Usage[] = []

  constructor(limiter: Limiter) {
    this.#limiter = limiter
  }

  /** @param most - the number of keys to find */
  look(now: number, most: number): Findings {
    const { meter, table } = this.#limiter
    const { end } = table
    const step = meter.surveyed
    const parts = Math.max(1, Math.ceil(end / step))
    this.#parts.length = Math.min(this.#parts.length, parts)
    this.#next = this.#next < parts ? this.#next : 0
    const best = new Best(Math.max(most, KEPT))
    for (const { slot } of this.#top) if (slot < end && table.keys[slot] !== undefined) best.offer(slot, meter.usedOf(slot, now))
    const from = this.#next * step
    this.#parts[this.#next] = this.#walk(from, Math.min(end, from + step), now, best)
    this.#next++
    this.#top = best.list
    return this.#sum(now, best.list.slice(0, most))
  }

  #walk(from: number, to: number, now: number, best: Best): Part {
    const limiter = this.#limiter
    const { meter, table, policy } = limiter
    const { keys } = table
    const { syncing, reservations } = meter
    const { limit } = policy
    const isBucket = policy.algorithm.most !== undefined
    const part: Part = { unsynced: 0, held: 0, since: now, overshoot: 0, debt: 0, own: 0, known: 0 }
    for (let slot = from; slot < to; slot++) {
      if (keys[slot] === undefined) continue
      part.held += reservations?.heldOf?.(slot) ?? 0
      const used = meter.usedOf(slot, now)
      if (used <= 0) continue
      if (used > best.floor) best.offer(slot, used)
      const most = isBucket ? limiter.most(limiter.limitOf(slot)) : limit
      if (isBucket) part.debt = Math.max(part.debt, used - most)
      if (syncing === undefined) continue
      if (syncing.wasExchanged(slot)) {
        part.own += meter.ownOf(slot, now)
        part.known += used
      }
      const unsynced = syncing.unsyncedOf(slot)
      if (unsynced <= 0) continue
      part.unsynced += unsynced
      part.since = Math.min(part.since, syncing.unsyncedSince(slot, now))
      // A process with leases can't use more than the store has granted.
      if (reservations?.leased !== true) part.overshoot = Math.max(part.overshoot, (used + unsynced * (syncing.nodes - 1) - most) / limit)
    }
    return part
  }

  #sum(now: number, top: readonly Usage[]): Findings {
    const sum = { unsynced: 0, held: 0, age: 0, overshoot: 0, debt: 0, own: 0, known: 0 }
    for (const part of this.#parts) {
      sum.unsynced += part.unsynced
      sum.held += part.held
      sum.age = Math.max(sum.age, now - part.since)
      sum.overshoot = Math.max(sum.overshoot, part.overshoot)
      sum.debt = Math.max(sum.debt, part.debt)
      sum.own += part.own
      sum.known += part.known
    }
    // A part has an age from its last walk even without units, so without any unit the age is 0.
    if (sum.unsynced === 0) sum.age = 0
    return { ...sum, top }
  }
}

/** The least number of keys that are carried from walk to walk. */
const KEPT = 100

/** Finds the largest few of many numbers. */
class Best {
  readonly list: Usage[] = []
  /** Values below it need not be offered. */
  floor = 0
  readonly #most: number
  readonly #slots = new Set<number>()

  constructor(most: number) {
    this.#most = most
  }

  offer(slot: number, used: number): void {
    if (used <= this.floor || this.#slots.has(slot)) return
    const { list } = this
    let at = list.length
    while (at > 0 && (list[at - 1] as Usage).used < used) at--
    list.splice(at, 0, { slot, used })
    this.#slots.add(slot)
    if (list.length <= this.#most) return
    const dropped = list.pop() as Usage
    this.#slots.delete(dropped.slot)
    this.floor = (list.at(-1) as Usage).used
  }
}
