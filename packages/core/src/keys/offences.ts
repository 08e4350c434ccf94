import type { CooldownGrowth } from '../time/cooldown-growth.ts'

/** The growth of cooldowns, and the memory of earlier blocks. */
export interface Growth extends CooldownGrowth {
  remember(): Offences
}

interface Record {
  level: number
  /** The monotonic time at which it is forgotten. */
  until: number
  /** The monotonic time at which the last block began here, and its length without earlier blocks. */
  began: number
  first: number
}

/** The recent blocks of each key, counted for cooldowns that grow. */
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
   * Learns from the store, which counts the blocks of all processes, that a block lasts for `remaining` from now. Afterwards this process
   * remembers at most as many blocks as the store does.
   *
   * @param first the longest possible first block
   * @param known whether this process already counted the block
   */
  learn(id: string, remaining: number, first: number, known: boolean, growth: CooldownGrowth, now: number): void {
    const record = known ? this.#records.get(id) : undefined
    const began = record?.began ?? now
    const base = record?.first ?? first
    // A shorter time is the end of a block that has already ended here.
    if (!known && remaining < base / 2) return
    const grown = Math.floor(Math.log((now + remaining - began) / base) / Math.log(growth.factor) + DELAY)
    const level = Math.max(this.#level(id, now) + (known ? 0 : 1), grown + 1)
    this.#put(id, { level, until: now + remaining + growth.memory, began, first: base }, now)
  }

  forget(id: string): void {
    this.#records.delete(id)
  }

  ids(): IterableIterator<string> {
    return this.#records.keys()
  }

  /** Forgets expired records. */
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

/** The number of records above which expired ones are removed, and again when twice the remaining number is reached. */
const MOST = 10_000
/** The most records that are kept, whatever the memory of the policy. Beyond it the oldest is dropped. */
const MOST_KEPT = 250_000
/** The part of a step of the growth by which a block may seem too short, because its report arrives a little late. */
const DELAY = 0.1
