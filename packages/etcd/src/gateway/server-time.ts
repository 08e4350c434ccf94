import type { Clock } from '@weir/core'

/** The most that two computers' clocks drift apart, as a part of the time that passes. */
const DRIFT = 1e-4
/** The resolution of times in replies, in milliseconds. */
const SECOND = 1_000

/**
 * The server's clock. etcd has no request for it, but each reply of its gateway has a `Date`, in whole seconds. Two replies together give
 * finer bounds than one. After some dozen replies the bounds are about a round trip apart.
 *
 *     date ≤ server < date + 1 s        at some moment between sent and received
 *
 * Within the bounds the process's own clock is used. So processes with correct clocks use exactly these, and others are off by at most a
 * second after the first reply.
 */
export class ServerTime {
  readonly #clock: Clock
  /** Bounds of the difference between the monotonic clock and the server's time. */
  #low = Number.NEGATIVE_INFINITY
  #high = Number.POSITIVE_INFINITY
  #boundAt = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Adds the time of a reply. `date` is the server's time. The others are on the monotonic clock. */
  saw(date: number, sent: number, received: number): void {
    if (!(date > 0)) return
    const passed = received - this.#boundAt
    const low = date - received
    const high = date + SECOND - sent
    const lowest = Math.max(low, this.#low - DRIFT * passed)
    const highest = Math.min(high, this.#high + DRIFT * passed)
    // If the bounds exclude each other, the server's clock was stepped, and only the newest reply counts.
    const stepped = lowest > highest
    this.#low = stepped ? low : lowest
    this.#high = stepped ? high : highest
    this.#boundAt = received
  }

  /** Drops the bounds, because another server with its own clock answers from now on. */
  forget(): void {
    this.#low = Number.NEGATIVE_INFINITY
    this.#high = Number.POSITIVE_INFINITY
  }

  /** Returns the server's time at a time of the monotonic clock, in milliseconds since the epoch. */
  at(monotonic: number): number {
    const own = this.#clock.now() - this.#clock.monotonic()
    return monotonic + Math.min(Math.max(own, this.#low), this.#high)
  }

  now(): number {
    return this.at(this.#clock.monotonic())
  }
}
