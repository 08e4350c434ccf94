import { Batch } from '../../counting/batch.ts'
import type { Exchanging, ScanOptions } from '../../counting/site.ts'
import { spanEnd } from '../../time/intervals.ts'

/** A walk over a meter's slots. */
interface Walk {
  readonly meter: Exchanging
  readonly options: ScanOptions
  from: number
}

/** A span's counts are sent within this part of the next span, at a random time, so that processes do not all write at once. */
const JITTER = 0.1
const AT_SPAN_END: ScanOptions = { all: false, resend: false }

/** When spans end, and the walks over all keys that follow: one after another, each in steps of bounded length. */
export class SpanWalks {
  readonly #random: () => number
  /** When a meter's span ends, jitter included, on the monotonic clock. */
  readonly #ends = new Map<Exchanging, number>()
  #walks: Walk[] = []
  /** Whether a walk that was to send everything again reached keys while the store was down. */
  #resendLater = false

  constructor(random: () => number) {
    this.#random = random
  }

  get waiting(): boolean {
    return this.#walks.length > 0
  }

  /** When the meter's span ends, on the monotonic clock. Undefined before the first `look`. */
  endOf(meter: Exchanging): number | undefined {
    return this.#ends.get(meter)
  }

  /** Moves a meter on to the interval and the span that `now` belongs to. */
  look(meter: Exchanging, now: number): void {
    if (now >= meter.rollAt) meter.roll(now)
    const at = this.#ends.get(meter)
    if (at !== undefined && now < at) return
    this.#ends.set(meter, meter.counts?.nextWalk?.(now) ?? this.#spanEnd(meter, now))
    if (at === undefined || this.#walks.some((walk) => walk.meter === meter && walk.from === 0)) return
    this.#walks.push({ meter, options: AT_SPAN_END, from: 0 })
  }

  #spanEnd({ site, time, counts }: Exchanging, now: number): number {
    const { interval, spans } = site.policy
    const end = time.monotonicAt(spanEnd(time.at(now), interval, spans))
    return Math.max(end + (counts?.jitter ? this.#random() * JITTER * (interval / spans) : 0), now + 1)
  }

  /** Walks over all keys of these meters now. Replaces the walks under way. */
  beginAll(meters: readonly Exchanging[], options: ScanOptions): void {
    // If a walk under way was to send everything again, this one must do so.
    const resend = options.resend || this.#resendLater || this.#walks.some((walk) => walk.options.resend)
    this.#resendLater = false
    this.#walks = meters.map((meter) => ({ meter, options: { ...options, resend }, from: 0 }))
  }

  /** Walks over all keys of a meter that is no longer used. */
  retire(meter: Exchanging): void {
    this.#ends.delete(meter)
    this.#walks.push({ meter, options: { all: true, resend: false }, from: 0 })
  }

  forget(meter: Exchanging): void {
    this.#ends.delete(meter)
    this.#walks = this.#walks.filter((walk) => walk.meter !== meter)
  }

  /** Continues the walks until the batch is full, or a walk has done as much as fits into one turn. */
  collect(now: number, batch: Batch): void {
    while (!batch.full && this.#walks.length > 0) if (!this.#step(now, batch)) return
  }

  /** While the store is down a span's end only frees idle keys. */
  walkAlone(now: number, mostEntries: number): void {
    const walk = this.#walks[0]
    if (walk === undefined) return
    if (walk.options.resend) this.#resendLater = true
    this.#step(now, new Batch(mostEntries))
  }

  /** Advances the first walk. Returns whether it has ended. */
  #step(now: number, batch: Batch): boolean {
    const walk = this.#walks[0] as Walk
    walk.from = walk.meter.counts?.scan(walk.from, now, batch, walk.options) ?? walk.meter.sweep(walk.from, now)
    if (walk.from >= 0) return false
    this.#walks.shift()
    return true
  }
}
