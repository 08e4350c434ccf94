import type { Cell, SyncResult } from '@weir/core/sync'
import { asArray, asBucket, asCells, asLease, asObject, asRemaining, asUnits, asWhole, replyError, understood } from '../reply/check.ts'
import type { EntryPlace } from './rows.ts'

/** The blocks and resets of keys in a reply, in the order of the rows. Empty if no key has any. */
class Known {
  readonly #left: readonly unknown[]
  readonly #manual: ReadonlySet<unknown>
  readonly #newer: Readonly<Record<string, unknown>>
  readonly #setBack: number

  constructor(value: unknown, setBack: number) {
    const { left, manual, newer } = value === null || value === undefined ? {} : asObject(value)
    this.#left = asArray(left)
    this.#manual = new Set(asArray(manual))
    this.#newer = newer === null || newer === undefined ? {} : asObject(newer)
    this.#setBack = setBack
  }

  of(place: number): Omit<SyncResult, 'cells'> {
    const left = this.#left[place]
    const epoch = this.#newer[String(place + 1)]
    const blocked = left === undefined ? 0 : Math.max(0, asRemaining(left) - this.#setBack)
    return {
      blocked,
      ...(blocked > 0 && this.#manual.has(place + 1) && { manual: true }),
      ...(epoch !== undefined && { epoch: asWhole(epoch) }),
    }
  }
}

/**
 * Returns the results of the entries of one call. If a result can't be read, only that entry has failed and is sent again.
 *
 * @param setBack milliseconds by which the server's clock was set back since the last call. Remaining times of blocks are too long by this
 */
export function resultsOf(
  reply: Readonly<Record<string, unknown>>,
  places: readonly EntryPlace[],
  setBack: number,
): (SyncResult | undefined)[] {
  const [x, y, w, b, e] = ['x', 'y', 'w', 'b', 'e'].map((name) => new Known(reply[name], setBack)) as [Known, Known, Known, Known, Known]
  const [xt, xg, yt, yg, wc, bc, l] = ['xt', 'xg', 'yt', 'yg', 'wc', 'bc', 'l'].map((name) => asArray(reply[name]))
  return places.map((place) =>
    understood((): SyncResult => {
      if (place.kind === 'window') return { cells: asCells(wc?.[place.row.place]), ...w.of(place.row.place) }
      if (place.kind === 'bucket') return { cells: [asBucket(bc?.[place.row.place])], ...b.of(place.row.place) }
      if (place.kind === 'lease') return { cells: [], ...e.of(place.row.place), lease: asLease(l?.[place.lease.place]) }
      if (place.kind === 'none') return { cells: [], ...e.of(place.row.place) }
      const cells = place.rows.map(({ written, row }): Cell => {
        const [taken, given] = written ? [xt?.[row.place], xg?.[row.place]] : [yt?.[row.place], yg?.[row.place]]
        return { ordinal: row.ordinal, taken: asUnits(taken), given: asUnits(given) }
      })
      const [first] = place.rows
      if (first === undefined) throw replyError('no cell')
      return { cells, ...(first.written ? x : y).of(first.row.place) }
    }),
  )
}
