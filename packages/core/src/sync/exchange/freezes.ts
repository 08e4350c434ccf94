import { STOOD_STILL } from '../../time/after-silence.ts'
import type { Clock } from '../../time/clock.ts'

/** Milliseconds after a process stood still in which failed syncs start no outage: connections may have died meanwhile, and are replaced. */
const REPLACING = 500
/** Lost connections, one after the other, that are no outage while a process stands still again and again. */
const FAILURES = 3
/**
 * Milliseconds after a process stood still in which it sends each unit at once, and its requests need counts that are not old. It may stand
 * still again right after a response, and would send the unit only with its next request.
 */
const FREEZES = 10_000
/** Milliseconds after which counts are old for a process that stands still again and again. */
const OLD = 50

/** Notices that the process stood still: frozen between two requests, stopped, or suspended. Times are of the monotonic clock. */
export class Freezes {
  /** When the process last ran again. -Infinity if it never stood still. */
  thawedAt: number = Number.NEGATIVE_INFINITY
  readonly #clock: Clock
  /** When a request last waited for a sync because of that. */
  #freshAt = Number.NEGATIVE_INFINITY
  /** When the last answered sync was sent. */
  #answeredAt = Number.NEGATIVE_INFINITY
  /** Connections that were lost since the last answer. */
  #failures = 0
  /** When the last sync failed, and when the process had run again before it. */
  #failedAt = Number.NEGATIVE_INFINITY
  #failedAfter = Number.NaN
  /** The time of the last tick. */
  #wall = Number.POSITIVE_INFINITY
  #monotonic = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  ticked(now: number): void {
    this.#wall = this.#clock.now()
    this.#monotonic = now
  }

  /** A sync that was sent at `sent` was answered. */
  answered(sent: number): void {
    this.#failures = 0
    this.#answeredAt = Math.max(this.#answeredAt, sent)
  }

  /** A request has read counts. */
  freshen(): void {
    this.#freshAt = this.#clock.monotonic()
  }

  /** @param dueAt when the next timer was due */
  notice(now: number, dueAt: number): boolean {
    if (!this.#stoodStill(now, dueAt)) return false
    this.thawedAt = now
    return true
  }

  /** Whether the process has stood still and has read no counts since, or does so again and again and has read none lately. */
  stale(now: number, dueAt: number): boolean {
    if (this.#stoodStill(now, dueAt)) return true
    if (this.#freshAt < this.thawedAt && now < this.thawedAt + STOOD_STILL) return true
    return this.lately(now) && now >= Math.max(this.#answeredAt, this.#freshAt) + OLD
  }

  /** Whether the process has stood still lately. Where requests drive the clock, that shows only that no request came. */
  lately(now: number): boolean {
    return !this.#clock.driven && now < this.thawedAt + FREEZES
  }

  /** Whether a sync that was sent at `sent` and has just failed starts no outage. */
  replacing(now: number, sent: number): boolean {
    const starting = now < this.thawedAt + REPLACING
    // A process may always stand still again before the next attempt. Syncs under way at the same time are lost with the same connection.
    const another = starting ? this.#failedAfter !== this.thawedAt : sent >= this.#failedAt
    this.#failedAt = now
    this.#failedAfter = this.thawedAt
    if (!starting && !this.lately(now)) return false
    if (another) this.#failures++
    return this.#failures <= FAILURES
  }

  /** The wall clock shows it even if the other clock stood still too, for example while a machine was suspended. */
  #stoodStill(now: number, dueAt: number): boolean {
    return now >= dueAt + STOOD_STILL || this.#clock.now() - this.#wall >= now - this.#monotonic + STOOD_STILL
  }
}
