/** The growth of the cooldown of repeated offenders. */
export interface CooldownGrowth {
  /** The factor by which each further block is longer. Greater than 1. */
  readonly factor: number
  /** The longest block, in milliseconds. */
  readonly max: number
  /** Milliseconds for which each block is remembered after its end. */
  readonly memory: number
}
