import type { Throttler } from '@weir/core'
import type { Point, View } from './protocol.ts'

/** Points of the charts, which cover ten minutes. */
const KEPT = 600
/** Milliseconds for which outages are listed. */
const LISTED = 30 * 60_000
const MOST_OUTAGES = 50

/** The points of the charts, and the outages of the store beside them. */
export class Charts {
  readonly #points: Point[] = []
  readonly #outages: [from: number, to: number][] = []
  readonly #off: () => void

  constructor(throttler: Throttler<string, never>) {
    this.#off = throttler.on('storeUp', ({ durationMs }) => {
      this.#outages.push([Date.now() - durationMs, Date.now()])
      if (this.#outages.length > MOST_OUTAGES) this.#outages.shift()
    })
  }

  get points(): readonly Point[] {
    return this.#points
  }

  add(point: Point): void {
    this.#points.push(point)
    if (this.#points.length > KEPT) this.#points.shift()
  }

  clear(): void {
    this.#points.length = 0
  }

  /**
   * Gives unknown points the values of the processes' own history, once all have reported it. Otherwise an outage would look like a time
   * without requests.
   *
   * @param slots points of the history, with the end of each slot
   * @returns the points that have changed
   */
  fill(slots: readonly Point[], slot: number): Point[] {
    return this.#points.flatMap(([time, allowed, , roundTrip], i) => {
      if (allowed !== null) return []
      const [, units, rejected] = slots.find(([end]) => end >= time && end - slot < time) ?? []
      if (units === undefined || units === null) return []
      const point: Point = [time, units, rejected ?? null, roundTrip]
      this.#points[i] = point
      return [point]
    })
  }

  /** @param downMs milliseconds for which the store has been down */
  outages(time: number, downMs: number): View['outages'] {
    const ended = this.#outages.filter(([, to]) => to > time - LISTED)
    return downMs > 0 ? [...ended, [time - downMs, null]] : ended
  }

  close(): void {
    this.#off()
  }
}
