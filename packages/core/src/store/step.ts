/** The result of one atomic step for a request to one key. Times are milliseconds from the step's `now`. */
export interface Verdict {
  readonly allowed: boolean
  /** Remaining units after the request. */
  readonly remaining: number
  /** Time until all units are back. */
  readonly resetAfterMs: number
  /** Time until the request could be allowed. It is 0 for an allowed request, and `Infinity` for a cost that never fits. */
  readonly retryAfterMs: number
  /** Time for which an allowed request should wait, with algorithms that shape traffic. Otherwise 0. */
  readonly delayMs: number
}

/**
 * One key of a policy as pure functions of its state. A store runs each of them as one atomic step, and every script is tested against
 * them. `state` is an array of numbers, empty for a new key. It is changed in place, and nothing else is read or written. `now` is
 * milliseconds since the Unix epoch, by the clock of the store that keeps the state. If that clock goes back, the key neither gains nor
 * loses time.
 */
export interface AtomicStep {
  /** Names the script in stores. */
  readonly id: string
  /**
   * The length of a cell in milliseconds, for steps that count in cells of the epoch. These use the time that the processes agree on, which
   * never jumps. All other steps use the store's own clock.
   */
  width?(parameters: readonly number[]): number
  /**
   * Whether `giveBack` checks that the units were taken since something began. Then its `at` must not be earlier than the real time at
   * which they were taken. Otherwise `at` must not be later.
   */
  readonly sinceStart?: true
  /** Whether several requests use more quota than one request for all of their units. Then each of them is sent by itself. */
  readonly oneByOne?: true
  /** Decides about `cost` units and counts them if they fit. A cost of 0 only looks. */
  take(state: number[], now: number, cost: number, limit: number, parameters: readonly number[]): Verdict
  /** Counts units whether or not they fit: a charge. */
  add(state: number[], now: number, units: number, limit: number, parameters: readonly number[]): void
  /** Returns units that were taken at the time `at`. Units that have left the count since then change nothing. */
  giveBack(state: number[], at: number, units: number, now: number, limit: number, parameters: readonly number[]): void
  /** Milliseconds until the state is worth no more than a new key's. Then it may be forgotten. */
  lifetime(state: readonly number[], now: number, limit: number, parameters: readonly number[]): number
}
