import type { AnyAlgorithm, Clock, Coordination, Store } from '@weir/core'

/** An algorithm with a coordination, and the store that its processes share. */
export interface WaitingUnderTest {
  /** Counts the requests. It is your own algorithm, or one of Weir's. */
  readonly algorithm: AnyAlgorithm
  /** Decides which process or store counts. */
  readonly coordination: Coordination
  /**
   * Makes the clock and the store of one test.
   *
   * @default a manual clock, and a simulated store whose round trip is 1 ms
   */
  readonly fixture?: () => WaitingFixture | Promise<WaitingFixture>
}

/** One empty store for one test, with its time. */
export interface WaitingFixture {
  /**
   * Makes the store of one process. It is called for each process of a test. Not used with `coordination: 'local'`.
   *
   * @default no store
   */
  store?(): Store
  /**
   * Sets the clock of the store and its processes.
   *
   * @default the clock of this process
   */
  readonly clock?: Clock
  /**
   * Lets time pass, of the store and of its processes.
   *
   * @default waits that long
   */
  pass?(milliseconds: number): Promise<void>
  /**
   * Makes the store unavailable to all processes. The function that it returns makes it available again, with its data.
   *
   * @default the tests of an outage are left out
   */
  goAway?(): Promise<() => Promise<void> | void>
  /** Ends the store, after the throttlers have been closed. */
  close?(): Promise<void> | void
}
