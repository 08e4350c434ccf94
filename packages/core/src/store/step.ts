/** The result of one atomic step for a request to one key. Times are milliseconds from the step's `now`. */
export interface Verdict {
  readonly allowed: boolean
  /** Units left after it. */
  readonly remaining: number
  /** Until all units are back. */
  readonly resetAfterMs: number
  /** 0 for an allowed request; `Infinity` for a cost that never fits. */
  readonly retryAfterMs: number
  /** How long an allowed request is to wait, by algorithms that shape traffic; else 0. */
  readonly delayMs: number
}

/**
 * One key of a policy as a pure function of its state: what a store does in one atomic step, and the model that every script is
 * tested against. `state` is an array of numbers, empty for a new key, and changed in place; nothing else is read or written.
 * `now` is milliseconds since the Unix epoch, by the clock of who keeps the state; one that has gone back gives no time and
 * takes none.
 */
export interface AtomicStep {
  /** Names the script in stores. */
  readonly id: string
  /**
   * Steps that count in cells of the epoch: the length of a cell in milliseconds. They use the time that the processes agree on, which
   * never jumps; all other steps use the store's own clock.
   */
  width?(parameters: readonly number[]): number
  /** Whether `giveBack` asks if the units were taken since something began: then `at` is no earlier than they were, else no later. */
  readonly sinceStart?: true
  /** Whether several requests take more than one request for all of their units: then each of them is asked for by itself. */
  readonly oneByOne?: true
  /** Decides about `cost` units and counts them if they fit. A cost of 0 only looks. */
  take(state: number[], now: number, cost: number, limit: number, parameters: readonly number[]): Verdict
  /** Counts units whether or not they fit: a charge. */
  add(state: number[], now: number, units: number, limit: number, parameters: readonly number[]): void
  /** Gives back units that were taken at the time `at`; what has left the count since then changes nothing. */
  giveBack(state: number[], at: number, units: number, now: number, limit: number, parameters: readonly number[]): void
  /** Milliseconds until the state says no more than that of a new key: then it may be forgotten. */
  lifetime(state: readonly number[], now: number, limit: number, parameters: readonly number[]): number
}
