/** The growth of the cooldown of repeated offenders. */
export interface CooldownGrowth {
  /** Factor by which each further block is longer. Greater than 1. */
  readonly factor: number
  /** Milliseconds. */
  readonly max: number
  /** Milliseconds. */
  readonly memory: number
}
