import type { Meter } from '../algorithms/meter.ts'
import type { MeterExchange } from '../algorithms/site.ts'
import { Alarm } from '../time/alarm.ts'
import type { Clock } from '../time/clock.ts'
import { StoreTime } from '../time/store-time.ts'

/** Runs the meters whose counts stay in this process: rolls them to the current time, and makes them remove idle keys. */
export class LocalMeters {
  /** The process as such a meter sees it. */
  readonly exchange: MeterExchange
  readonly #clock: Clock
  readonly #time: StoreTime
  /** The slots that the walks over the meters' keys have reached. */
  readonly #walks = new Map<Meter, number>()
  /** The `rollAt` of meters at their last walk: a request may have rolled one. */
  readonly #rolled = new WeakMap<Meter, number>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#time = new StoreTime(clock.now(), clock.monotonic())
    this.exchange = Object.freeze({ localTime: this.#time, defer: (run: () => void) => clock.defer(run) })
  }

  begin(): void {
    this.#time.begin(this.#clock.now(), this.#clock.monotonic())
  }

  /** Returns when it must be called next at the latest, on the monotonic clock. */
  tick(meters: readonly Meter[], now: number): number {
    this.#time.follow(this.#clock.now(), now)
    let next = Number.POSITIVE_INFINITY
    for (const meter of meters) {
      if (now >= meter.rollAt) meter.roll(now)
      const before = this.#rolled.get(meter)
      this.#rolled.set(meter, meter.rollAt)
      if (before !== undefined && before !== meter.rollAt && !this.#walks.has(meter)) this.#walks.set(meter, 0)
      const from = this.#walks.get(meter)
      const then = from === undefined ? -1 : meter.sweep(from, now)
      if (then >= 0) this.#walks.set(meter, then)
      else this.#walks.delete(meter)
      next = Math.min(next, then >= 0 ? now : meter.rollAt)
    }
    for (const meter of this.#walks.keys()) if (!meters.includes(meter)) this.#walks.delete(meter)
    return next
  }
}

/** Calls a function at the times that it returns, by one timer. */
export class Ticker {
  readonly #clock: Clock
  readonly #tick: (now: number) => number
  readonly #alarm: Alarm

  /** @param tick returns when it must be called next, on the monotonic clock */
  constructor(clock: Clock, tick: (now: number) => number) {
    this.#clock = clock
    this.#tick = tick
    this.#alarm = new Alarm(clock, () => this.wake())
  }

  /** Calls it now. */
  wake(): void {
    this.#alarm.set(this.#tick(this.#clock.monotonic()))
  }

  stop(): void {
    this.#alarm.stop()
  }
}
