import type { Clock } from '@weir/core'

/** Clocks of computers run apart by no more than this part of the time that passes. */
const DRIFT = 1e-4
/** Answers tell the time in whole seconds, milliseconds. */
const SECOND = 1_000

/**
 * The server's clock. etcd has none among its requests, but each answer of its gateway has a `Date`, in whole seconds. What two answers say
 * together is finer than one: after some dozen of them the bounds are about a round trip apart.
 *
 *     date ≤ server < date + 1 s        at some moment between sent and received
 *
 * Within the bounds the node's own clock decides. So nodes whose clocks are right go by them exactly, and others are a second off at
 * most, as soon as a first answer is there.
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

  /** An answer told the time. Times but `date` are of the monotonic clock. */
  saw(date: number, sent: number, received: number): void {
    if (!(date > 0)) return
    const passed = received - this.#boundAt
    const low = date - received
    const high = date + SECOND - sent
    const lowest = Math.max(low, this.#low - DRIFT * passed)
    const highest = Math.min(high, this.#high + DRIFT * passed)
    // Where they exclude each other its clock was stepped: only the newest answer counts.
    const stepped = lowest > highest
    this.#low = stepped ? low : lowest
    this.#high = stepped ? high : highest
    this.#boundAt = received
  }

  /** Another server answers from now on, with a clock of its own. */
  forget(): void {
    this.#low = Number.NEGATIVE_INFINITY
    this.#high = Number.POSITIVE_INFINITY
  }

  /** The server's time at a time of the monotonic clock, milliseconds since the epoch. */
  at(monotonic: number): number {
    const own = this.#clock.now() - this.#clock.monotonic()
    return monotonic + Math.min(Math.max(own, this.#low), this.#high)
  }

  now(): number {
    return this.at(this.#clock.monotonic())
  }
}
