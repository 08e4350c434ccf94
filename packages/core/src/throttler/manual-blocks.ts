import { UNANSWERED } from '../decide/blocks.ts'
import { type Counter, type CounterHost, wireOfKey } from '../decide/limiter.ts'
import { LOCAL } from '../decide/stats.ts'
import { boundedOnce, copied } from '../keys/key-text.ts'
import { show, WeirError } from '../report/errors.ts'
import { type Duration, parseDuration } from '../time/duration.ts'

/** Which policies a block is of. */
export interface BlockOptions {
  /** A policy's name. Default: all policies. */
  readonly policy?: string
}

/** What blocks by hand need of the throttler that they are set at. */
export interface ManualBlocksParts {
  readonly host: CounterHost
  counters(): readonly Counter[]
  /** The monotonic time; all counters are brought to it. */
  now(): number
}

/** Blocks that people set and lift, whatever a key's counts are. */
export class ManualBlocks {
  readonly #parts: ManualBlocksParts

  constructor(parts: ManualBlocksParts) {
    this.#parts = parts
  }

  /** As the throttler's. */
  block(given: string, duration: Duration, options: BlockOptions): void {
    const ms = parseDuration(duration, 'duration', 1)
    const key = keyOf(given)
    const now = this.#parts.now()
    for (const counter of this.#countersOf(options)) {
      const slot = counter.locateAlways(key)
      counter.reconsider(slot, 1, now, false)
      counter.blocks.set(slot, now + ms, true, LOCAL, UNANSWERED)
      this.#tell(counter, counter.wireKey(slot), 'set', ms, now)
      this.#parts.host.blocked(counter, key, ms, 'manual')
    }
  }

  /** As the throttler's. */
  unblock(given: string, options: BlockOptions): void {
    const key = keyOf(given)
    const now = this.#parts.now()
    for (const counter of this.#countersOf(options)) {
      const slot = counter.table.find(key)
      const was = slot < 0 ? undefined : counter.blockOf(slot, now)
      if (was !== undefined) counter.blocks.clear(slot)
      // Also where this node knows of no block: the others may.
      this.#tell(counter, wireOfKey(key), 'lift', 0, now)
      if (was !== undefined) this.#parts.host.unblocked(counter, key, 'manual')
    }
  }

  #tell(counter: Counter, key: string, kind: 'set' | 'lift', remaining: number, now: number): void {
    const { host } = this.#parts
    if (host.connected) host.changeBlock(counter, { policy: counter.wire, key, kind, remaining }, now + remaining)
  }

  #countersOf({ policy: name }: BlockOptions): readonly Counter[] {
    const counters = this.#parts.counters()
    if (name === undefined) return counters
    const counter = counters.find(({ policy }) => policy.name === name)
    if (counter === undefined) {
      const names = counters.map(({ policy }) => show(policy.name)).join(', ')
      throw new WeirError('WEIR_UNKNOWN_POLICY', `There is no policy ${show(name)}; there is ${names}.`)
    }
    return [counter]
  }
}

/** A key as it is counted, in memory of its own: what is told to the store may wait for long. */
function keyOf(key: unknown): string {
  if (typeof key !== 'string') throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, not ${show(key)}.`)
  return copied(boundedOnce(key))
}
