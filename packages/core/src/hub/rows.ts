import { flag, isObject, number, object, oneOf, type Reader, text, whole } from '../report/readers.ts'
import type { LeaseRecord } from '../store/leases/grant.ts'
import type { Ordinal } from '../time/intervals.ts'

/*
 * The parts of a hub that must survive a restart of its process. Counts need not: processes send them again. Times are of the clock's
 * `monotonic`, which must continue after the restart.
 */

/** A block, or the last reset of a key. */
export interface BlockRow {
  readonly type: 'block'
  readonly policyId: string
  readonly key: string
  readonly end: number
  readonly keep: number
  readonly manual: boolean
  readonly epoch: number
  readonly epochUntil: number
}

/** The leases of a key in one interval. */
export interface LeaseRow {
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

/** An entry of the log of manual actions. */
export interface AuditRow {
  readonly type: 'audit'
  readonly name: string
  readonly entry: string
  readonly until: number
}

export type HubRow = BlockRow | LeaseRow | AuditRow

const time = number(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
const units = number(0, Number.MAX_VALUE)
const name = text(10_000)
const isRow = (row: unknown): boolean => isObject(row) && Array.isArray(row['open'])
const rows: Reader<LeaseRecord['rows']> = (value) => (value instanceof Map && [...value.values()].every(isRow) ? value : undefined)
const record: Reader<LeaseRecord> = object({ out: time, used: time, tail: flag, quietUntil: time, epoch: units, earliest: time, rows })
const ordinal = whole<Ordinal>(0, Number.MAX_SAFE_INTEGER)

const READERS: { readonly [T in HubRow['type']]: Reader<HubRow> } = {
  block: object({ type: oneOf('block'), policyId: name, key: name, end: time, keep: time, manual: flag, epoch: units, epochUntil: time }),
  lease: object({ type: oneOf('lease'), name, policyId: name, key: name, ordinal, record, until: time, newsUntil: time, lost: flag }),
  audit: object({ type: oneOf('audit'), name, entry: name, until: time }),
}

/** A row as it was stored, or undefined if another version of this package has written it in another form. */
export function readRow(value: unknown): HubRow | undefined {
  const type = isObject(value) ? value['type'] : undefined
  return typeof type === 'string' && Object.hasOwn(READERS, type) ? READERS[type as keyof typeof READERS](value) : undefined
}

/**
 * Receives the name of each row that changed. `read` returns its latest value, or undefined once the row has expired. It may be called
 * later, so that a row that changes several times is written once.
 */
export type RowsChanged = (name: string, read: () => HubRow | undefined) => void

/** The name of a row. A JSON list, so that names never collide, even if a key contains separators. */
export function rowOf(...parts: readonly (string | number)[]): string {
  return JSON.stringify(parts)
}
