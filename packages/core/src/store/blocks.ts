import type { CooldownGrowth } from '../time/cooldown-growth.ts'
import type { StorePolicy } from './policy.ts'

/**
 * A change of a block.
 * - `'exceeded'`: a limit was exceeded. While a block lasts, another `'exceeded'` changes nothing.
 * - `'set'`: a manual block. It replaces the current block.
 * - `'restore'`: a block that is sent again after the store lost its data. The longer block remains.
 * - `'lift'`: a manual unblock.
 * - `'reset'`: the key's counts start again with `epoch`, in all processes. The store forgets the counts and the number of earlier blocks,
 *   and ends the block unless it is manual. A reset that is not newer than the known one changes nothing.
 */
export interface BlockChange {
  readonly policy: StorePolicy
  readonly key: string
  readonly kind: 'exceeded' | 'set' | 'restore' | 'lift' | 'reset'
  /** Milliseconds from now for which the key is blocked. It is 0 for `'lift'` and `'reset'`. */
  readonly remaining: number
  /** For `'restore'`: the block is manual. */
  readonly manual?: true
  /**
   * For `'reset'`: its time, a whole number of milliseconds since the Unix epoch by the policy's clock, and more than any earlier reset of
   * the key. For `'exceeded'`: the key's last reset that this process knows. A store with a newer reset changes nothing.
   */
  readonly epoch?: number
  /**
   * Only for `'exceeded'`: the store remembers how often the key was blocked, and blocks it for `remaining · factor^n`, at most `max` (but
   * never less than `remaining`), after n blocks that it remembers. It remembers each block for `memory` after its end.
   */
  readonly growth?: CooldownGrowth
}

/** A key's block in the store. */
export interface BlockState {
  readonly policyId: string
  readonly key: string
  /** Milliseconds from now. It is 0 after the block was lifted. */
  readonly remaining: number
  /** The block is manual. */
  readonly manual?: true
  /** The key's last reset, as long as processes may have counts from before it. */
  readonly epoch?: number
}
