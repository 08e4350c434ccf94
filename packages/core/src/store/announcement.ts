import type { BlockState } from './blocks.ts'
import type { LeaseNotice } from './leases/ask.ts'
import type { Cell } from './policy.ts'

/** Totals of a key that passed its `hot` mark or reached a limit. Facts, not verdicts: each node compares for itself. */
export interface TotalAnnouncement {
  readonly type: 'total'
  readonly policyId: string
  readonly key: string
  /** As in `SyncResult.cells`. None if the store has lost the key's counts: each process that has some sends them again. */
  readonly cells: readonly Cell[]
  /** The key's last reset, where that concerns the first cell: these units were counted after it. */
  readonly epoch?: number
}

/** A node wants to know how much of a key was used (`SyncEntry.ask`). */
export interface AskAnnouncement {
  readonly type: 'ask'
  readonly policyId: string
  readonly key: string
}

/** A block that was set, or lifted (`remaining` 0), or a reset (`epoch`). */
export interface BlockAnnouncement extends BlockState {
  readonly type: 'block'
}

/** A message from the store to processes outside a sync. It may be lost: that costs accuracy, never correctness. */
export type Announcement = TotalAnnouncement | BlockAnnouncement | AskAnnouncement | LeaseNotice
