import type { Paces } from '../../algorithms/bucket/paces.ts'
import { drained, ROUNDING } from '../../algorithms/bucket/step.ts'
import { drainTime } from '../../algorithms/drain-time.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import type { Exchange } from '../site.ts'
import type { BucketKey } from './key.ts'
import type { Levels } from './levels.ts'

/** Milliseconds between probes of a store that is down. */
const PROBE = 200

/** Decisions of a process that can't reach the store in time, by `failMode`. Times are of the monotonic clock. */
export class Alone {
  readonly #site: SharedSite
  readonly #exchange: Exchange
  readonly #levels: Levels
  readonly #paces: Paces

  constructor(site: SharedSite, exchange: Exchange, levels: Levels, paces: Paces) {
    this.#site = site
    this.#exchange = exchange
    this.#levels = levels
    this.#paces = paces
  }

  /** This process has allowed units. */
  add(key: BucketKey, slot: number, units: number, now: number): void {
    if (key.guess !== undefined) this.#set(key, this.guess(key, slot, now) + units / this.#share(key, slot), now)
  }

  /** `failMode: 'share'`: the bucket's level if the others allow as much as they usually do. */
  guess(key: BucketKey, slot: number, now: number): number {
    const { guess, guessAt } = key
    // The others usually have as many unsent units, in proportion.
    if (guess === undefined) return this.#levels.at(slot, now) + key.cells.unsent() * (1 / this.#share(key, slot) - 1)
    return drained(guess, now - guessAt, this.#paces.of(slot), this.#site.policy.interval)
  }

  /** @param count whether a request is decided: it sets the level from which the units of this process count */
  allows(key: BucketKey, slot: number, cost: number, now: number, count: boolean): boolean {
    if (this.#site.policy.failMode === 'closed') return false
    const guess = this.guess(key, slot, now)
    if (count && key.guess === undefined) this.#set(key, guess, now)
    return guess + cost / this.#share(key, slot) <= this.#most(key, slot, cost) * (1 + ROUNDING)
  }

  /** Milliseconds until a rejected request may be allowed. */
  opensIn(key: BucketKey, slot: number, cost: number, now: number): number {
    const { failMode, interval } = this.#site.policy
    if (failMode === 'closed') return PROBE
    const most = this.#most(key, slot, cost)
    const units = Math.min(most, cost / this.#share(key, slot))
    return drainTime(this.guess(key, slot, now) + units - most * (1 + ROUNDING / 2), this.#paces.of(slot), interval)
  }

  /** A process whose share is less than a unit allows one when the bucket has drained. */
  #most(key: BucketKey, slot: number, cost: number): number {
    return Math.max(this.#site.most(this.#site.limitOf(slot)), Math.min(cost, 1) / this.#share(key, slot))
  }

  #share({ share }: BucketKey, slot: number): number {
    return share.alone(this.#exchange.nodes, this.#site.most(this.#site.limitOf(slot)))
  }

  #set(key: BucketKey, guess: number, now: number): void {
    key.guess = guess
    key.guessAt = now
  }
}
