/**
 * The store's clock as this node estimates it: its own monotonic clock plus an offset that is measured at each
 * exchange. All nodes agree on it within half a round trip, whatever their wall clocks say, so all of them begin an
 * interval together.
 *
 * A correction is slewed, so that a step of the store's clock (a failover to another primary) neither repeats nor skips
 * an interval abruptly. The offset jumps only with the first measurement, and forwards: soon after it to join the other
 * processes, and after this machine was suspended.
 */
export class StoreTime {
  /** Offset at `#from` on the monotonic clock; from there it moves towards `#target`. */
  #offset: number
  #from: number
  #target: number
  /** Half width of the interval that holds the true offset, when it was measured. */
  #error = Number.POSITIVE_INFINITY
  #measuredAt: number
  /** Until then the process joins others that are ahead of a store's clock that was stepped back. Infinite until the store has answered. */
  #joinsUntil = Number.POSITIVE_INFINITY

  /**
   * @param wall this node's wall clock, which serves until the store has answered, in milliseconds since the epoch
   * @param monotonic the monotonic clock at the same moment
   */
  constructor(wall: number, monotonic: number) {
    this.#offset = wall - monotonic
    this.#target = this.#offset
    this.#from = monotonic
    this.#measuredAt = monotonic
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
   * When the store's clock will show `time`, on the monotonic clock, if no other correction comes. Callers compare with
   * `at` when the moment has come, since the division rounds.
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
   * Takes a reply into account: Cristian's algorithm (Cristian 1989, "Probabilistic clock synchronization"): the
   * store's clock was read between `sent` and `received`, so the middle is off by at most half the round trip.
   *
   * @param ahead by how much the other processes are ahead of a store's clock that was stepped: a process that starts joins them
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
    // Less than the resolution of clocks is no news: it would move the ends of intervals to and fro, after clients were told them.
    if (off < CLOCK_RESOLUTION) {
      this.#error = Math.min(aged, error + off)
      this.#measuredAt = received
      return
    }
    // A worse measurement that agrees with a better one adds nothing; one that contradicts it means a step.
    if (error > aged && off <= error + aged) return
    this.#offset = this.offsetAt(received)
    this.#from = received
    this.#target = sample
    this.#error = error
    this.#measuredAt = received
  }

  /**
   * Follows this process's wall clock, where that serves instead of a store's.
   */
  follow(wall: number, monotonic: number): void {
    if (!this.measured || Math.abs(wall - this.at(monotonic)) > CLOCK_RESOLUTION) this.observe(monotonic, monotonic, wall)
  }

  /** By how much `at` may be off, in milliseconds; 0 until the store has answered, since nobody knows better then. */
  uncertainty(now: number): number {
    return this.measured ? this.#error + (now - this.#measuredAt) * DRIFT : 0
  }

  /** The store's clock was not stepped, this node's was held, as when a machine is suspended: ends a correction at once. */
  catchUp(monotonic: number): void {
    this.#offset = Math.max(this.offsetAt(monotonic), this.#target)
    this.#from = monotonic
  }

  /** Whether it is far from what the store's clock shows, as that was stepped. */
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
/** How far two good clocks may drift apart: 200 ppm, twice what is usual. */
const DRIFT = 200e-6
const RESOLUTION = 0.5
/** Clocks show whole milliseconds at worst: what one shows is earlier than its time by less than this. */
const CLOCK_RESOLUTION = 1
/** A correction by more than this is no measuring error, in milliseconds. */
const STEP = 1_000
/**
 * In milliseconds, three times the longest heartbeat. The others may not have reported a step yet when a process starts. If it went by
 * the stepped clock from then on, it would count beside them for hours, as they are slewed.
 */
const JOINING = 30_000
