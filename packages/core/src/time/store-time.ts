/**
 * The store's clock as this process estimates it: its own monotonic clock plus an offset that it measures at each sync. All processes agree
 * on it within half a round trip, whatever their wall clocks show, so all of them begin an interval together.
 *
 * A correction is slewed, so that a step of the store's clock (a failover to another primary) neither repeats nor skips an interval
 * abruptly. The offset jumps only with the first measurement, and forwards: soon after it to join the other processes, and after this
 * machine was suspended.
 */
export class StoreTime {
  /** Offset at `#from` on the monotonic clock. From there it moves towards `#target`. */
  #offset: number
  #from: number
  #target: number
  /** Half the width of the range that contained the true offset when it was measured. */
  #error = Number.POSITIVE_INFINITY
  #measuredAt: number
  /** Until then the process joins others that are ahead of a store's clock that was stepped back. Infinite until the store has answered. */
  #joinsUntil = Number.POSITIVE_INFINITY

  /**
   * @param wall this process's wall clock, in milliseconds since the epoch. It is used until the store has answered
   * @param monotonic the monotonic clock at the same moment
   */
  constructor(wall: number, monotonic: number) {
    this.#offset = wall - monotonic
    this.#target = this.#offset
    this.#from = monotonic
    this.#measuredAt = monotonic
  }

  /** Begins again with this process's wall clock, unless the store has answered. Both clocks may have stood still since the creation. */
  begin(wall: number, monotonic: number): void {
    if (this.measured) return
    this.#offset = this.#target = wall - monotonic
    this.#from = this.#measuredAt = monotonic
  }

  /** Store time at a time of the monotonic clock. */
  at(monotonic: number): number {
    return monotonic + this.offsetAt(monotonic)
  }

  /** The difference between the store's time and the monotonic clock. */
  offsetAt(monotonic: number): number {
    const missing = this.#target - this.#offset
    if (missing === 0) return this.#offset
    const most = Math.max(0, monotonic - this.#from) * SLEW
    return this.#offset + Math.max(-most, Math.min(most, missing))
  }

  /**
   * The monotonic time at which the store's clock will show `time`, unless another correction follows. The division rounds, so callers
   * compare with `at` at that time.
   */
  monotonicAt(time: number): number {
    const before = time - this.#offset
    const missing = this.#target - this.#offset
    const settled = time - this.#target
    if (missing === 0 || settled - this.#from >= Math.abs(missing) / SLEW) return settled
    if (before <= this.#from) return before
    // In between: time = t + offset ± SLEW·(t − from).
    const rate = missing > 0 ? SLEW : -SLEW
    return (before + rate * this.#from) / (1 + rate)
  }

  /**
   * Updates the estimate by a reply, with Cristian's algorithm (Cristian 1989, "Probabilistic clock synchronization"). The store's clock
   * was read between `sent` and `received`, so the middle is off by at most half the round trip.
   *
   * @param ahead milliseconds by which the other processes are ahead of a store's clock that was stepped. A process that starts joins them
   */
  observe(sent: number, received: number, storeTime: number, ahead = 0): void {
    if (!Number.isFinite(storeTime)) return
    const sample = storeTime - (sent + received) / 2
    // The store's clock has a resolution of a millisecond at worst.
    const error = (received - sent) / 2 + RESOLUTION
    if (!this.measured || (ahead > STEP && received < this.#joinsUntil && !this.stepped(received))) {
      // The store's clock may have been stepped again: this process's time never goes back.
      this.#offset = this.measured ? Math.max(this.offsetAt(received), sample + ahead) : sample + ahead
      this.#joinsUntil = Math.min(this.#joinsUntil, received + JOINING)
      this.#target = sample
      this.#from = received
      this.#error = error
      this.#measuredAt = received
      return
    }
    const aged = this.#error + (received - this.#measuredAt) * DRIFT
    const off = Math.abs(sample - this.#target)
    // Differences below the resolution of clocks are ignored. They would move the ends of intervals after clients received them.
    if (off < CLOCK_RESOLUTION) {
      this.#error = Math.min(aged, error + off)
      this.#measuredAt = received
      return
    }
    // A worse measurement that agrees with a better one adds nothing. If it contradicts the better one, the clock was stepped.
    if (error > aged && off <= error + aged) return
    this.#offset = this.offsetAt(received)
    this.#from = received
    this.#target = sample
    this.#error = error
    this.#measuredAt = received
  }

  /** Follows this process's wall clock, if that replaces a store's clock. */
  follow(wall: number, monotonic: number): void {
    if (!this.measured || Math.abs(wall - this.at(monotonic)) > CLOCK_RESOLUTION) this.observe(monotonic, monotonic, wall)
  }

  /** The most by which `at` may be off, in milliseconds. It is 0 until the store has answered, because there is no better estimate. */
  uncertainty(now: number): number {
    return this.measured ? this.#error + (now - this.#measuredAt) * DRIFT : 0
  }

  /** Ends a correction at once: not the store's clock was stepped, but this process's stood still, as when a machine is suspended. */
  catchUp(monotonic: number): void {
    this.#offset = Math.max(this.offsetAt(monotonic), this.#target)
    this.#from = monotonic
  }

  /** Whether the time is far from the store's clock, because that was stepped. */
  stepped(monotonic: number): boolean {
    return Math.abs(this.#target - this.offsetAt(monotonic)) > STEP
  }

  /** Whether the store has answered yet. */
  get measured(): boolean {
    return this.#joinsUntil < Number.POSITIVE_INFINITY
  }
}

/** Fraction of elapsed time by which the offset may move: 2 s of error are gone after 20 s. */
const SLEW = 0.1
/** The most by which two good clocks may drift apart: 200 ppm, twice the usual drift. */
const DRIFT = 200e-6
const RESOLUTION = 0.5
/** The resolution of clocks that show whole milliseconds: the time shown is earlier than the real one by less than this. */
const CLOCK_RESOLUTION = 1
/** A correction by more than this, in milliseconds, is no measuring error. */
const STEP = 1_000
/**
 * Milliseconds for which a process that starts joins the others: three times the longest heartbeat, because they may not have reported a
 * step yet. If the process followed the stepped clock from its start, it would not count in the same intervals as the others for hours,
 * because their time is slewed.
 */
const JOINING = 30_000
