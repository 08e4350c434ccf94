import type { BlockState } from './blocks.ts'
import type { LeaseNotice } from './leases/ask.ts'
import type { Cell } from './policy.ts'

/** Totals of a key that passed its `hot` mark or reached a limit. They are no verdict: each process compares them with its own limit. */
export interface TotalAnnouncement {
  readonly type: 'total'
  readonly policyId: string
  readonly key: string
  /** As in `SyncResult.cells`. Empty if the store has lost the key's counts: then each process that has counts sends them again. */
  readonly cells: readonly Cell[]
  /** The key's last reset, if it concerns the first cell. The units in `cells` were counted after it. */
  readonly epoch?: number
}

/** A process needs the other processes' counts of a key (`SyncEntry.ask`). */
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
