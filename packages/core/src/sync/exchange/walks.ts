import { Batch } from '../../algorithms/shared/batch.ts'
import type { Counter, ScanOptions } from '../../decide/limiter.ts'
import { spanEnd } from '../../time/intervals.ts'

/** A walk over a counter's slots. */
interface Walk {
  readonly counter: Counter
  readonly options: ScanOptions
  from: number
}

/** A span's counts are sent within this part of the next one, at random, so that nodes do not all write at once. */
const JITTER = 0.1
const AT_SPAN_END: ScanOptions = { all: false, resend: false }

/** When spans end, and the walks over all keys that follow: one after another, each in steps of bounded length. */
export class SpanWalks {
  readonly #random: () => number
  /** When a counter's span ends, jitter included, on the monotonic clock. */
  readonly #ends = new Map<Counter, number>()
  #walks: Walk[] = []
  /** A walk that was to send everything again came to a key while the store was away. */
  #resendLater = false

  constructor(random: () => number) {
    this.#random = random
  }

  get waiting(): boolean {
    return this.#walks.length > 0
  }

  /** When the counter's span ends, on the monotonic clock; undefined before it was looked at. */
  endOf(counter: Counter): number | undefined {
    return this.#ends.get(counter)
  }

  /** Moves a counter on to the interval and the span that `now` belongs to. */
  look(counter: Counter, now: number): void {
    if (now >= counter.rollAt) counter.roll(now)
    const at = this.#ends.get(counter)
    if (at !== undefined && now < at) return
    const { interval, spans } = counter.policy
    const end = counter.time.monotonicAt(spanEnd(counter.time.at(now), interval, spans))
    const jitter = counter.policy.enforcement === 'proof' ? this.#random() * JITTER * (interval / spans) : 0
    this.#ends.set(counter, Math.max(end + jitter, now + 1))
    if (at === undefined || this.#walks.some((walk) => walk.counter === counter && walk.from === 0)) return
    this.#walks.push({ counter, options: AT_SPAN_END, from: 0 })
  }

  /** Walks over all keys of these counters now, instead of what was under way. */
  beginAll(counters: readonly Counter[], options: ScanOptions): void {
    // What a walk that is not over yet was to send again must still be sent again.
    const resend = options.resend || this.#resendLater || this.#walks.some((walk) => walk.options.resend)
    this.#resendLater = false
    this.#walks = counters.map((counter) => ({ counter, options: { ...options, resend }, from: 0 }))
  }

  /** Walks over all keys of a counter that is no longer used. */
  retire(counter: Counter): void {
    this.#ends.delete(counter)
    this.#walks.push({ counter, options: { all: true, resend: false }, from: 0 })
  }

  /** Goes on with the walks until the batch is full, or one of them has done as much as fits into one turn. */
  collect(now: number, batch: Batch): void {
    while (!batch.full && this.#walks.length > 0) if (!this.#step(now, batch)) return
  }

  /** Without a store a span's end only frees idle keys. */
  walkAlone(now: number, mostEntries: number): void {
    const walk = this.#walks[0]
    if (walk === undefined) return
    if (walk.options.resend) this.#resendLater = true
    this.#step(now, new Batch(mostEntries))
  }

  /** Whether the first walk has come to its end. */
  #step(now: number, batch: Batch): boolean {
    const walk = this.#walks[0] as Walk
    walk.from = walk.counter.scan(walk.from, now, batch, walk.options)
    if (walk.from >= 0) return false
    this.#walks.shift()
    return true
  }
}
