/** An exact limiter: one counter that counts every request in order. The decisions of a cluster are compared with it. */
export interface Reference {
  /** Whether an exact limiter that gets the same requests allows this one. If so, it counts it. */
  allows(time: number, cost: number): boolean
}

/** An exact limiter for intervals aligned to the Unix epoch. */
export class FixedReference implements Reference {
  readonly #limit: number
  readonly #interval: number
  readonly #cooldown: number
  #end = Number.NEGATIVE_INFINITY
  #used = 0
  #blockedUntil = Number.NEGATIVE_INFINITY

  constructor(limit: number, interval: number, cooldown: number) {
    this.#limit = limit
    this.#interval = interval
    this.#cooldown = cooldown
  }

  allows(time: number, cost: number): boolean {
    if (time >= this.#end) {
      this.#end = (Math.floor(time / this.#interval) + 1) * this.#interval
      this.#used = 0
    }
    if (time < this.#blockedUntil) return false
    if (this.#used + cost <= this.#limit) {
      this.#used += cost
      return true
    }
    // A request too expensive for the remaining units is rejected alone. A cooldown starts only if one unit would not fit either.
    if (this.#cooldown > 0 && this.#used + Math.min(1, cost) > this.#limit) this.#blockedUntil = Math.max(this.#end, time + this.#cooldown)
    return false
  }
}

/** An exact limiter that never allows more than the limit in any stretch of an interval's length. It keeps a log of allowed requests. */
export class SlidingReference implements Reference {
  readonly #log: SlidingLog
  readonly #limit: number
  readonly #cooldown: number
  #blockedUntil = Number.NEGATIVE_INFINITY

  constructor(limit: number, interval: number, cooldown: number) {
    this.#log = new SlidingLog(interval)
    this.#limit = limit
    this.#cooldown = cooldown
  }

  allows(time: number, cost: number): boolean {
    const used = this.#log.usedAt(time)
    if (time < this.#blockedUntil) return false
    if (used + cost <= this.#limit) {
      this.#log.add(time, cost)
      return true
    }
    if (this.#cooldown > 0 && used + Math.min(1, cost) > this.#limit) this.#blockedUntil = time + this.#cooldown
    return false
  }
}

/** An exact limiter for a bucket that drains at the limit's pace. */
export class LeakyReference implements Reference {
  readonly #level: LeakyLevel
  readonly #most: number
  readonly #cooldown: number
  #blockedUntil = Number.NEGATIVE_INFINITY

  /** @param most - the size of the bucket, in units */
  constructor(limit: number, interval: number, most: number, cooldown: number) {
    this.#level = new LeakyLevel(limit, interval)
    this.#most = most
    this.#cooldown = cooldown
  }

  allows(time: number, cost: number): boolean {
    const level = this.#level.at(time)
    if (time < this.#blockedUntil) return false
    if (level + cost <= this.#most * (1 + 1e-10)) {
      this.#level.add(time, cost)
      return true
    }
    if (this.#cooldown > 0 && level + Math.min(1, cost) > this.#most) this.#blockedUntil = time + this.#cooldown
    return false
  }
}

/** The level of a bucket. It neither drains nor fills if time goes back. */
export class LeakyLevel {
  readonly #limit: number
  readonly #interval: number
  #level = 0
  #then = Number.NEGATIVE_INFINITY

  constructor(limit: number, interval: number) {
    this.#limit = limit
    this.#interval = interval
  }

  at(time: number): number {
    return this.#level === 0 ? 0 : Math.max(0, this.#level - (Math.max(0, time - this.#then) * this.#limit) / this.#interval)
  }

  add(time: number, units: number): void {
    this.#level = this.at(time) + units
    this.#then = Math.max(this.#then, time)
  }
}

/** Units taken in the last `length` milliseconds, in a ring that grows as needed. */
export class SlidingLog {
  readonly #length: number
  #times = new Float64Array(64)
  #costs = new Float64Array(64)
  #first = 0
  #size = 0
  #used = 0

  constructor(length: number) {
    this.#length = length
  }

  /** Units taken in (time - length, time]. Times must not go back. */
  usedAt(time: number): number {
    const mask = this.#times.length - 1
    const edge = time - this.#length
    while (this.#size > 0 && (this.#times[this.#first] as number) <= edge) {
      this.#used -= this.#costs[this.#first] as number
      this.#first = (this.#first + 1) & mask
      this.#size--
    }
    if (this.#size === 0) this.#used = 0
    return this.#used
  }

  add(time: number, cost: number): void {
    if (this.#size === this.#times.length) this.#grow()
    const place = (this.#first + this.#size) & (this.#times.length - 1)
    this.#times[place] = time
    this.#costs[place] = cost
    this.#size++
    this.#used += cost
  }

  #grow(): void {
    const size = this.#times.length
    const times = new Float64Array(size * 2)
    const costs = new Float64Array(size * 2)
    for (let index = 0; index < size; index++) {
      const place = (this.#first + index) & (size - 1)
      times[index] = this.#times[place] as number
      costs[index] = this.#costs[place] as number
    }
    this.#times = times
    this.#costs = costs
    this.#first = 0
  }
}
