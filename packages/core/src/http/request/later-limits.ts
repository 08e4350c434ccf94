import { Recent } from '../../keys/recent.ts'

/** The time for which an answer is kept, in milliseconds. */
const KEPT = 1_000
/** Keys in each of two generations. */
const REMEMBERED = 1_000

interface Kept {
  /** The promise to wait for, or its result. Undefined for the policy's own limit. */
  readonly answer: object | number | undefined
  readonly until: number
}

/** Later answers of a `limit` function, by key. It is called once for a burst of requests, and then at most once per second. */
export class LaterLimits {
  readonly #kept = new Recent<Kept>(REMEMBERED)

  /** @returns the pending or known limit of a key; undefined if the function must be called */
  find(key: string, now: number): Pick<Kept, 'answer'> | undefined {
    const kept = this.#kept.get(key)
    return kept !== undefined && now < kept.until ? kept : undefined
  }

  wait(key: string, answer: object): void {
    this.#kept.set(key, { answer, until: Number.POSITIVE_INFINITY })
  }

  keep(key: string, answer: number | undefined, now: number): void {
    this.#kept.set(key, { answer, until: now + KEPT })
  }
}
