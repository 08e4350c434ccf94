import type { Clock } from '@weir/core'
import type { StoreConnection, StoreNode } from '@weir/core/sync'

/** One empty store for one test. */
export interface StoreContractFixture {
  /** Opens a process's connection. A fixture may pass it on to another process. */
  connect(node: StoreNode): StoreConnection | Promise<StoreConnection>
  /** Sets the clock of the store and its processes. Default: the clock of this process. */
  readonly clock?: Clock
  /** Lets time pass, for the store and its processes. Default: waits that long. */
  pass?(milliseconds: number): Promise<void>
  /** Loses all data, like a restart of a store without persistence. Processes stay connected, or reconnect by themselves. */
  lose?(): Promise<void> | void
  /** Makes the store unavailable to all processes. The function that it returns makes it available again, with or without its data. */
  goAway?(): Promise<() => Promise<void> | void>
  /** Lists entries of the store that don't expire, or entries that are left once everything should have expired. */
  leftovers?(): Promise<readonly string[]> | readonly string[]
  close(): Promise<void> | void
}
