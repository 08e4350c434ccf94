/** The most parts of a series. With more, pairs of parts are merged. */
const MOST_PARTS = 240

/** Requests within one stretch of time. */
export interface SeriesPart {
  /** Milliseconds since the epoch. */
  readonly from: number
  readonly requests: number
  readonly rejected: number
}

/** Counts over time, in a bounded number of parts with the same length, for any range of time. */
export class Series {
  /** Milliseconds. */
  width = 1_000
  #from: number | undefined
  #requests: number[] = []
  #rejected: number[] = []

  /** @param time milliseconds since the epoch, not much earlier than in previous calls */
  add(time: number, rejected: boolean): void {
    this.#from ??= Math.floor(time / this.width) * this.width
    let part = Math.max(0, Math.floor((time - this.#from) / this.width))
    while (part >= MOST_PARTS) {
      this.#halve()
      part = Math.max(0, Math.floor((time - this.#from) / this.width))
    }
    this.#requests[part] = (this.#requests[part] ?? 0) + 1
    if (rejected) this.#rejected[part] = (this.#rejected[part] ?? 0) + 1
  }

  /** The parts from the first to the last one with a request. */
  get parts(): readonly SeriesPart[] {
    return Array.from(this.#requests, (requests = 0, part) => ({
      from: (this.#from ?? 0) + part * this.width,
      requests,
      rejected: this.#rejected[part] ?? 0,
    }))
  }

  #halve(): void {
    this.width *= 2
    const from = Math.floor((this.#from ?? 0) / this.width) * this.width
    // If the first part begins in the middle of a merged part, it is merged with none.
    const shift = from === this.#from ? 0 : 1
    this.#from = from
    this.#requests = halved(this.#requests, shift)
    this.#rejected = halved(this.#rejected, shift)
  }
}

function halved(parts: readonly number[], shift: number): number[] {
  const half: number[] = []
  for (let part = 0; part < parts.length; part++) {
    const at = (part + shift) >> 1
    half[at] = (half[at] ?? 0) + (parts[part] ?? 0)
  }
  return half
}
