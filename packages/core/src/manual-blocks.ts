import { type Counter, wireOfKey } from './counter.ts'
import { LOCAL } from './counter-stats.ts'
import { type Duration, parseDuration } from './duration.ts'
import { show, WeirError } from './errors.ts'
import { UNANSWERED } from './key-blocks.ts'

/** Which policies a block is of. */
export interface BlockOptions {
  /** A policy's name. Default: all policies. */
  readonly policy?: string
}

/** What blocks by hand need of the throttler that they are set at. */
export interface ManualBlocksHost {
  readonly counters: readonly Counter[]
  /** The monotonic time; all counters are brought to it. */
  now(): number
  blocked(counter: Counter, key: string, forMs: number, cause: 'manual'): void
  unblocked(counter: Counter, key: string, cause: 'manual'): void
  /** Tells the other nodes; nothing without a store. */
  changeBlock(counter: Counter, wireKey: string, kind: 'set' | 'lift', remaining: number, now: number): void
}

/** Blocks that people set and lift, whatever a key's counts are. */
export class ManualBlocks {
  readonly #host: ManualBlocksHost

  constructor(host: ManualBlocksHost) {
    this.#host = host
  }

  /** As the throttler's. */
  block(key: string, duration: Duration, options: BlockOptions): void {
    const ms = parseDuration(duration, 'duration', 1)
    const now = this.#host.now()
    for (const counter of this.#countersOf(key, options)) {
      const slot = counter.locateAlways(key)
      counter.reconsider(slot, 1, now, false)
      counter.setBlock(slot, now + ms, true, LOCAL, UNANSWERED)
      this.#host.changeBlock(counter, counter.wireKey(slot), 'set', ms, now)
      this.#host.blocked(counter, key, ms, 'manual')
    }
  }

  /** As the throttler's. */
  unblock(key: string, options: BlockOptions): void {
    const now = this.#host.now()
    for (const counter of this.#countersOf(key, options)) {
      const slot = counter.table.find(key)
      const was = slot < 0 ? undefined : counter.blockOf(slot, now)
      if (was !== undefined) counter.clearBlock(slot)
      // Also where this node knows of no block: the others may.
      this.#host.changeBlock(counter, wireOfKey(key), 'lift', 0, now)
      if (was !== undefined) this.#host.unblocked(counter, key, 'manual')
    }
  }

  #countersOf(key: string, { policy: name }: BlockOptions): readonly Counter[] {
    if (typeof key !== 'string') throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, not ${show(key)}.`)
    const { counters } = this.#host
    if (name === undefined) return counters
    const counter = counters.find(({ policy }) => policy.name === name)
    if (counter === undefined) {
      const names = counters.map(({ policy }) => show(policy.name)).join(', ')
      throw new WeirError('WEIR_UNKNOWN_POLICY', `There is no policy ${show(name)}; there is ${names}.`)
    }
    return [counter]
  }
}
