import type { LeaseRecord } from '../store/leases/grant.ts'
import type { Ordinal } from '../time/intervals.ts'

/**
 * A part of a hub that must survive a restart of its process. Counts need not: processes send them again. Times are of the clock's
 * `monotonic`, which must continue after the restart.
 */
export type HubRow =
  | {
      readonly type: 'block'
      readonly policyId: string
      readonly key: string
      readonly end: number
      readonly keep: number
      readonly manual: boolean
      readonly epoch: number
      readonly epochUntil: number
    }
  | {
      readonly type: 'lease'
      readonly name: string
      readonly policyId: string
      readonly key: string
      readonly ordinal: Ordinal
      readonly record: LeaseRecord
      readonly until: number
      readonly newsUntil: number
      readonly lost: boolean
    }
  | { readonly type: 'audit'; readonly name: string; readonly entry: string; readonly until: number }

/**
 * Receives the name of each row that changed. `read` returns its latest value, or undefined once the row has expired. It may be called
 * later, so that a row that changes several times is written once.
 */
export type RowsChanged = (name: string, read: () => HubRow | undefined) => void

/** The name of a row. A JSON list, so that names never collide, even if a key contains separators. */
export function rowOf(...parts: readonly (string | number)[]): string {
  return JSON.stringify(parts)
}
