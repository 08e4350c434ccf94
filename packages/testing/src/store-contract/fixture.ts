import type { Clock } from '@weir/core'
import type { StoreConnection, StoreNode } from '@weir/core/sync'

/** One empty store for one test. */
export interface StoreContractFixture {
  /** Opens a node's connection. A fixture may hand on to another process. */
  connect(node: StoreNode): StoreConnection | Promise<StoreConnection>
  /** The clock by which nodes and store live. Default: that of the process. */
  readonly clock?: Clock
  /** Lets time pass, of the store and of its nodes. Default: waits that long. */
  pass?(milliseconds: number): Promise<void>
  /** Loses all data, as a restart of an empty store does. Nodes stay connected, or come back by themselves. */
  lose?(): Promise<void> | void
  /** Takes the store away from all nodes; the function that it returns brings it back, with its data or without. */
  goAway?(): Promise<() => Promise<void> | void>
  /** Lists entries of the store that don't expire, or entries that are left once everything should have expired. */
  leftovers?(): Promise<readonly string[]> | readonly string[]
  close(): Promise<void> | void
}
