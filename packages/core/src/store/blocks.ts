import type { CooldownGrowth } from '../time/cooldown-growth.ts'
import type { StorePolicy } from './policy.ts'

/**
 * A change of a block.
 * - `'exceeded'`: a limit was exceeded. The first one decides: while a block lasts, another `exceeded` changes nothing.
 * - `'set'`: blocked by hand: replaces what is there.
 * - `'restore'`: sent again after the store lost its data; keeps the longer one.
 * - `'lift'`: unblocked by hand.
 * - `'reset'`: the key's counts begin anew with `epoch`, at all nodes: the store forgets them, and how often the key was
 *   blocked; and ends its block, unless that was set by hand. A reset that is not newer than the known one changes nothing.
 */
export interface BlockChange {
  readonly policy: StorePolicy
  readonly key: string
  readonly kind: 'exceeded' | 'set' | 'restore' | 'lift' | 'reset'
  /** Milliseconds from now for which the key is blocked; 0 for `'lift'` and `'reset'`. */
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

/** A key's block as the store knows it. */
export interface BlockState {
  readonly policyId: string
  readonly key: string
  /** Milliseconds from now; 0 when the block was lifted. */
  readonly remaining: number
  /** Set by hand. */
  readonly manual?: true
  /** The key's last reset, as long as nodes may hold counts of before it. */
  readonly epoch?: number
}
