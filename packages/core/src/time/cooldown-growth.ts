/** How the cooldown of repeated offenders grows. */
export interface CooldownGrowth {
  /** What each further block is longer by; greater than 1. */
  readonly factor: number
  /** Milliseconds. */
  readonly max: number
  /** Milliseconds. */
  readonly memory: number
}
