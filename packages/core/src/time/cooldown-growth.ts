/** How the cooldown of repeated offenders grows. */
export interface CooldownGrowth {
  /** Factor by which each further block is longer; greater than 1. */
  readonly factor: number
  /** Milliseconds. */
  readonly max: number
  /** Milliseconds. */
  readonly memory: number
}
