import type { CooldownGrowth } from '../time/cooldown-growth.ts'

/** How cooldowns grow, and what remembers the blocks. */
export interface Growth extends CooldownGrowth {
  remember(): Offences
}

interface Record {
  level: number
  /** When it is forgotten, on the monotonic clock. */
  until: number
  /** When the last block began here, and what it would have been without earlier ones. */
  began: number
  first: number
}

/** How often keys were blocked lately, for cooldowns that grow. */
export class Offences {
  readonly #records = new Map<string, Record>()
  #sweepAt = MOST

  /** The cooldown of a new block, in milliseconds: `base · factor^n`, at most `max`, after n blocks that are remembered. */
  next(id: string, base: number, growth: CooldownGrowth, now: number): number {
    const level = this.#level(id, now)
    const cooldown = Math.min(Math.max(base, growth.max), base * growth.factor ** level)
    this.#put(id, { level: level + 1, until: now + cooldown + growth.memory, began: now, first: base }, now)
    return cooldown
  }

  /**
   * The store, which knows the blocks at all nodes, tells how long one lasts: `remaining` from now. This node then remembers
   * at most as many blocks as the store does.
   *
   * @param first the longest that a first block can be
   * @param known whether the block was known here, so that it counts already
   */
  learn(id: string, remaining: number, first: number, known: boolean, growth: CooldownGrowth, now: number): void {
    const record = known ? this.#records.get(id) : undefined
    const began = record?.began ?? now
    const base = record?.first ?? first
    // A shorter time is the end of a block that is over here already.
    if (!known && remaining < base / 2) return
    const grown = Math.floor(Math.log((now + remaining - began) / base) / Math.log(growth.factor) + DELAY)
    const level = Math.max(this.#level(id, now) + (known ? 0 : 1), grown + 1)
    this.#put(id, { level, until: now + remaining + growth.memory, began, first: base }, now)
  }

  forget(id: string): void {
    this.#records.delete(id)
  }

  /** Forgets what is over. */
  sweep(now: number): void {
    for (const [id, { until }] of this.#records) if (until <= now) this.#records.delete(id)
  }

  clear(): void {
    this.#records.clear()
  }

  get size(): number {
    return this.#records.size
  }

  #level(id: string, now: number): number {
    const record = this.#records.get(id)
    return record !== undefined && record.until > now ? record.level : 0
  }

  #put(id: string, record: Record, now: number): void {
    this.#records.set(id, record)
    if (this.size > MOST_KEPT) this.#records.delete(this.#records.keys().next().value as string)
    if (this.size <= this.#sweepAt) return
    this.sweep(now)
    this.#sweepAt = Math.max(MOST, 2 * this.size)
  }
}

/** More records than this are looked through for those that are over; again when twice as many are left. */
const MOST = 10_000
/** So many are remembered at most, however long they are to be: the oldest goes. */
const MOST_KEPT = 250_000
/** A block is heard of a little late, so it seems shorter than it is: by this part of a step of its growth at most. */
const DELAY = 0.1
