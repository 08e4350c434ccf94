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
  /** Of a `'restore'`: the block was set by hand. */
  readonly manual?: true
  /**
   * Of a `'reset'`: its moment, a whole number of milliseconds since the Unix epoch by the clock that the policy goes by, and
   * more than any earlier one of the key. Of an `'exceeded'`: the key's last reset as this node knows it; a store that knows
   * of a newer one changes nothing.
   */
  readonly epoch?: number
  /**
   * Of an `'exceeded'` only: the store remembers how often the key was blocked, and blocks it for
   * `remaining · factor^n`, at most `max` (but never less than `remaining`), after n blocks that it remembers. Each is
   * remembered for `memory` after it ended.
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
