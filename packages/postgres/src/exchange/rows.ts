import type { Cell, LeaseAsk, Ordinal, SyncEntry } from '@weir/core/sync'
import { escapeText, nameOf } from '../keys/keys.ts'
import type { PolicyList } from './policies.ts'

/** The columns that identify a row of one cell, and a process's counts for it. */
interface Row {
  readonly policy: number
  readonly key: string
  readonly label: string | null
  readonly ordinal: Ordinal
  taken: number
  given: number
  readonly epoch: number
  readonly first: number
  /** Sliding windows: the entry to which it belongs. */
  readonly window: KeyRow | undefined
  /** Its index in the call, from 0. */
  place: number
}

/** A key's window or bucket, or a key without cells in its entry. */
interface KeyRow {
  readonly policy: number
  readonly key: string
  readonly label: string | null
  readonly cells: readonly Cell[]
  readonly epoch: number
  readonly first: number | null
  writes: boolean
  place: number
}

/** A request for quota. */
interface LeaseRow extends Pick<KeyRow, 'policy' | 'key' | 'label'> {
  readonly ask: LeaseAsk
  place: number
}

/** The part of a reply that answers an entry. */
export type EntryPlace =
  | { readonly kind: 'cells'; readonly rows: readonly { readonly written: boolean; readonly row: Row }[] }
  | { readonly kind: 'window'; readonly row: KeyRow }
  | { readonly kind: 'bucket'; readonly row: KeyRow }
  | { readonly kind: 'none'; readonly row: KeyRow }
  | { readonly kind: 'lease'; readonly row: KeyRow; readonly lease: LeaseRow }

/** The entries of one call as rows, without duplicates. They are sorted, because all processes must lock them in the same order. */
export class Rows {
  readonly places: readonly EntryPlace[]
  readonly #written: Row[]
  readonly #asked: Row[]
  readonly #windows: KeyRow[]
  readonly #buckets: KeyRow[]
  readonly #bare: KeyRow[]
  readonly #leases: LeaseRow[]

  constructor(entries: readonly SyncEntry[], policies: PolicyList) {
    const written: Row[] = []
    const asked: Row[] = []
    const windows: KeyRow[] = []
    const buckets: KeyRow[] = []
    const bare: KeyRow[] = []
    const leases: LeaseRow[] = []
    this.places = entries.map((entry): EntryPlace => {
      const { policy, cells, epoch = 0 } = entry
      const escaped = escapeText(entry.key)
      const key = nameOf(escaped)
      const label = key === escaped ? null : escaped
      const at = policies.placeOf(policy)
      const first = cells[0]?.ordinal ?? null
      if (entry.lease !== undefined || first === null || policy.drain !== undefined || policy.cells > 1) {
        const row: KeyRow = { policy: at, key, label, cells, epoch, first, writes: cells.some(isWritten), place: 0 }
        if (entry.lease !== undefined) {
          return { kind: 'lease', row: put(bare, row), lease: put(leases, { policy: at, key, label, ask: entry.lease, place: 0 }) }
        }
        if (first === null) return { kind: 'none', row: put(bare, row) }
        if (policy.drain !== undefined) return { kind: 'bucket', row: put(buckets, row) }
        for (const { ordinal, taken, given } of cells) {
          if (taken > 0 || given > 0) written.push({ policy: at, key, label, ordinal, taken, given, epoch, first, window: row, place: 0 })
        }
        return { kind: 'window', row: put(windows, row) }
      }
      const rows = cells.map(({ ordinal, taken, given }) => {
        const row: Row = { policy: at, key, label, ordinal, taken, given, epoch, first, window: undefined, place: 0 }
        const writes = taken > 0 || given > 0
        return { written: writes, row: put(writes ? written : asked, row) }
      })
      return { kind: 'cells', rows }
    })
    this.#windows = numbered(windows.sort(byKey))
    this.#buckets = numbered(buckets.sort(byKey))
    this.#bare = numbered(bare)
    this.#asked = numbered(asked)
    this.#leases = numbered(leases.sort((a, b) => byKey(a, b) || a.ask.ordinal - b.ask.ordinal))
    this.#written = merged(written.sort(byCell))
  }

  /** Returns the values of x_, y_, w_, b_ and e_. */
  columns(): unknown[][] {
    const [x, y, w, b, e] = [this.#written, this.#asked, this.#windows, this.#buckets, this.#bare]
    return [
      ...[x.map(({ policy }) => policy), x.map(({ key }) => key), x.map(({ label }) => label), x.map(({ ordinal }) => ordinal)],
      ...[x.map(({ taken }) => taken), x.map(({ given }) => given), x.map(({ epoch }) => epoch), x.map(({ first }) => first)],
      x.map(({ window }) => (window === undefined ? 0 : window.place + 1)),
      ...[y.map(({ policy }) => policy), y.map(({ key }) => key), y.map(({ ordinal }) => ordinal)],
      ...[y.map(({ epoch }) => epoch), y.map(({ first }) => first)],
      ...[w.map(({ policy }) => policy), w.map(({ key }) => key), w.map(({ label }) => label), w.map(({ cells }) => newestOf(cells))],
      ...[w.map(({ epoch }) => epoch), w.map(({ first }) => first), w.map(({ writes }) => writes)],
      ...[b.map(({ policy }) => policy), b.map(({ key }) => key), b.map(({ label }) => label), b.map(({ epoch }) => epoch)],
      b.map(({ first }) => first),
      ...[e.map(({ policy }) => policy), e.map(({ key }) => key), e.map(({ epoch }) => epoch)],
    ]
  }

  /** The requests for quota. */
  get leases(): object[] {
    return this.#leases.map(({ policy: p, key: k, label: l, ask }) => {
      const {
        ordinal,
        incarnation,
        seq,
        granted,
        returned,
        taken,
        given,
        cleared,
        epoch,
        least,
        waiting,
        upTo,
        limit,
        nodes,
        early,
        lifetime,
        open = [],
      } = ask
      const said = [ordinal, incarnation, seq, granted, returned, taken, given, cleared, epoch]
      const returns = open.flatMap(({ due, back }) => [due, back])
      return {
        p,
        k,
        ...(l !== null && { l }),
        ask: [...said, least, waiting, upTo, limit, nodes, early, lifetime, ...returns].map(bounded),
      }
    })
  }

  /** The cells of each bucket. */
  get buckets(): number[][][] {
    return this.#buckets.map(({ cells }) =>
      cells.map(({ ordinal, taken, given, rejected = 0, level = 0 }) => [ordinal, taken, given, rejected, level]),
    )
  }
}

/** JSON has no infinity. */
function bounded(number: number): number {
  return Math.min(number, Number.MAX_SAFE_INTEGER)
}

function isWritten({ taken, given }: Cell): boolean {
  return taken > 0 || given > 0
}

function newestOf(cells: readonly Cell[]): number {
  return cells.reduce((newest, { ordinal }) => Math.max(newest, ordinal), Number.NEGATIVE_INFINITY)
}

function put<T>(list: T[], row: T): T {
  list.push(row)
  return row
}

function numbered<T extends { place: number }>(rows: T[]): T[] {
  rows.forEach((row, place) => {
    row.place = place
  })
  return rows
}

type Sorted = Pick<KeyRow, 'policy' | 'key'>

// Names are ASCII, so the database sorts them in the same order.
function byKey(a: Sorted, b: Sorted): number {
  return a.policy - b.policy || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
}

function byCell(a: Row, b: Row): number {
  return byKey(a, b) || a.ordinal - b.ordinal
}

/** Numbers sorted rows, and merges rows of the same cell. */
function merged(rows: readonly Row[]): Row[] {
  const kept: Row[] = []
  for (const row of rows) {
    const last = kept.at(-1)
    if (last === undefined || byCell(last, row) !== 0) kept.push(row)
    else {
      last.taken = Math.max(last.taken, row.taken)
      last.given = Math.max(last.given, row.given)
    }
    row.place = kept.length - 1
  }
  return kept
}
