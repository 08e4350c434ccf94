import { flag, isObject, number, object, oneOf, type Reader, text, whole } from '../report/readers.ts'
import type { LeaseRecord } from '../store/leases/grant.ts'
import type { Ordinal } from '../time/intervals.ts'

/*
 * The parts of a hub that must survive a restart of its process. Counts need not: processes send them again. Times are of the clock's
 * `monotonic`, which must continue after the restart.
 */

const time = number(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
const units = number(0, Number.MAX_VALUE)
const name = text(10_000)

const READERS = {
  block: object({
    type: oneOf('block'),
    policyId: name,
    key: name,
    end: time,
    keep: time,
    manual: flag,
    epoch: units,
    epochUntil: time,
  }),
  lease: object({
    type: oneOf('lease'),
    name,
    policyId: name,
    key: name,
    ordinal: whole<Ordinal>(0, Number.MAX_SAFE_INTEGER),
    record: object({
      out: time,
      used: time,
      tail: flag,
      quietUntil: time,
      epoch: units,
      earliest: time,
      rows: ((rows) => (rows instanceof Map ? rows : undefined)) as Reader<LeaseRecord['rows']>,
    }) as Reader<LeaseRecord>,
    until: time,
    newsUntil: time,
    lost: flag,
  }),
  audit: object({ type: oneOf('audit'), name, entry: name, until: time }),
}

type Rows = { readonly [T in keyof typeof READERS]: Exclude<ReturnType<(typeof READERS)[T]>, undefined> }
export type BlockRow = Rows['block']
export type LeaseRow = Rows['lease']
export type HubRow = Rows[keyof Rows]

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
