import type { SeededRandom } from '../random/random.ts'

/** The surroundings of a load. */
export interface LoadContext {
  readonly random: SeededRandom
  /** Units per interval of the simulated policy. */
  readonly limit: number
  /** The policy's interval, in milliseconds. */
  readonly interval: number
  /** The key for loads that don't choose one. */
  readonly key: string
}

/** A sequence of requests, read one at a time: the fields contain the next one. */
export interface Arrivals {
  /** Its time of arrival, in milliseconds since the start of the first interval. `Infinity` after the last request. */
  time: number
  key: string
  cost: number
  /** Moves to the next request. */
  advance(): void
}

/** A source of requests. */
export interface Load {
  /** Names the load and its parameters in messages. */
  readonly name: string
  start(context: LoadContext): Arrivals
}

/** A piece of a load's course: this many times the limit per interval, until a position in intervals. */
export interface Stretch {
  readonly times: number
  readonly until: number
}

/** The course of a load. Returns the stretch at a position, in intervals since the start, fractions included. */
export type Course = (position: number) => Stretch

/** Options that loads of one key share. */
export interface KeyedLoad {
  /**
   * Sets the key of all requests.
   *
   * @default the scenario's key
   */
  readonly key?: string
  /**
   * Sets the units of each request: a number, or a random whole number from the first to the second.
   *
   * @default 1
   */
  readonly cost?: number | readonly [least: number, most: number]
}

/** Draws the costs of a load. `mean` is their mean. */
function costsOf({ cost = 1 }: KeyedLoad): { readonly mean: number; draw(random: SeededRandom): number } {
  if (typeof cost === 'number') return { mean: cost, draw: () => cost }
  const [least, most] = cost
  return { mean: (least + most) / 2, draw: (random) => least + random.below(most - least + 1) }
}

/**
 * A Poisson process: independent clients.
 *
 * @param times its rate as a multiple of the limit (1 offers as many requests per interval as the limit allows), or
 * a course of such rates
 */
export function poisson(times: number | Course, options: KeyedLoad = {}): Load {
  return {
    name: typeof times === 'number' ? `poisson x${times}` : 'poisson with a course',
    start: (context) =>
      new Poisson(typeof times === 'number' ? () => ({ times, until: Number.POSITIVE_INFINITY }) : times, context, options),
  }
}

class Poisson implements Arrivals {
  time = 0
  readonly key: string
  cost: number
  readonly #random: SeededRandom
  readonly #costs: ReturnType<typeof costsOf>
  readonly #course: Course
  readonly #interval: number
  readonly #limit: number
  #rate = 0
  #until = 0
  #untilPosition = 0

  constructor(course: Course, context: LoadContext, options: KeyedLoad) {
    this.key = options.key ?? context.key
    this.#costs = costsOf(options)
    this.cost = this.#costs.draw(context.random)
    this.#course = course
    this.#random = context.random
    this.#interval = context.interval
    this.#limit = context.limit / this.#costs.mean
    this.#enter(0)
    this.advance()
  }

  advance(): void {
    this.cost = this.#costs.draw(this.#random)
    // The rate changes in steps. An exponential amount of "rate times time" passes between two arrivals.
    let amount = this.#random.exponential()
    for (;;) {
      const next = this.#rate > 0 ? this.time + amount / this.#rate : Number.POSITIVE_INFINITY
      if (next < this.#until || this.#until === Number.POSITIVE_INFINITY) {
        this.time = next
        return
      }
      amount -= (this.#until - this.time) * this.#rate
      this.time = this.#until
      this.#enter(this.#untilPosition)
    }
  }

  /**
   * Enters the stretch at a position. It uses the course's own number, because dividing a time may give a position just before the
   * change.
   */
  #enter(position: number): void {
    const stretch = this.#course(position)
    if (!(stretch.until > position)) throw new RangeError(`A course must go on: at ${position} it ends at ${stretch.until}`)
    this.#rate = (stretch.times * this.#limit) / this.#interval
    this.#untilPosition = stretch.until
    this.#until = stretch.until * this.#interval
  }
}

/**
 * A rate that changes between high and low, e.g. an attack tuned to a window. Positions and lengths are in intervals.
 *
 * @example squareWave({ high: 100, low: 0, period: 3, duty: 1 / 3 })
 */
export function squareWave(
  wave: {
    /** Sets the high rate, as a multiple of the limit. */
    readonly high: number
    /** Sets the low rate, as a multiple of the limit. */
    readonly low: number
    /** Sets the length of a period, in intervals. */
    readonly period: number
    /**
     * Sets the fraction of a period with the high rate.
     *
     * @default 0.5
     */
    readonly duty?: number
    /**
     * Starts the first period at this position.
     *
     * @default 0
     */
    readonly phase?: number
  },
  options: KeyedLoad = {},
): Load {
  const { high, low, period, duty = 0.5, phase = 0 } = wave
  const course: Course = (position) => {
    // Whole periods are counted, so that rounding can't put a change before the position that is looked up.
    let cycle = Math.floor((position - phase) / period)
    if (position >= phase + (cycle + 1) * period) cycle++
    const change = phase + (cycle + duty) * period
    return position < change ? { times: high, until: change } : { times: low, until: phase + (cycle + 1) * period }
  }
  return { ...poisson(course, options), name: `square wave x${low} to x${high}, period ${period}, duty ${duty}, phase ${phase}` }
}

/** Sends volleys of requests at once, or spread evenly over `width` milliseconds. Positions are in intervals. */
export function bursts(
  volley: {
    /** Sets how many requests a volley has. */
    readonly size: number
    /** Sets the time from one volley to the next, in intervals. */
    readonly every: number
    /**
     * Sets the position of the first volley.
     *
     * @default 0
     */
    readonly phase?: number
    /**
     * Spreads a volley over this many milliseconds.
     *
     * @default 0
     */
    readonly width?: number
  },
  options: KeyedLoad = {},
): Load {
  const { size, every, phase = 0, width = 0 } = volley
  return {
    name: `bursts of ${size} every ${every} intervals, phase ${phase}, ${width} ms wide`,
    start: ({ key, interval, random }) => {
      const costs = costsOf(options)
      let count = 0
      return {
        time: phase * interval,
        key: options.key ?? key,
        cost: costs.draw(random),
        advance() {
          count++
          this.cost = costs.draw(random)
          const place = count % size
          this.time = (phase + Math.floor(count / size) * every) * interval + (place * width) / size
        },
      }
    },
  }
}

/** One request of a recorded trace. */
export interface TraceRequest {
  /** Milliseconds since the start of the first interval, never less than the previous request's. */
  readonly time: number
  readonly key?: string
  readonly cost?: number
}

/** Replays requests from any iterable in order of time, for example recorded ones. Each run iterates it once. */
export function trace(requests: Iterable<TraceRequest>): Load {
  return {
    name: 'trace',
    start: ({ key }) => {
      const iterator = requests[Symbol.iterator]()
      const arrivals: Arrivals = {
        time: 0,
        key,
        cost: 1,
        advance() {
          const { done, value } = iterator.next()
          if (done === true) {
            this.time = Number.POSITIVE_INFINITY
            return
          }
          if (value.time < this.time) throw new RangeError(`A trace must be in order of time: ${value.time} came after ${this.time}`)
          this.time = value.time
          this.key = value.key ?? key
          this.cost = value.cost ?? 1
        },
      }
      arrivals.advance()
      return arrivals
    },
  }
}

/**
 * Requests many keys in turn, in a scattered order that repeats. In an interval each key gets `perInterval / keys` requests, within
 * one.
 *
 * @param perInterval - requests in an interval for all keys together, at random moments
 */
export function manyKeys(keys: number, perInterval: number, prefix = 'cold-'): Load {
  return {
    name: `${perInterval} requests per interval over ${keys} keys`,
    start: ({ random, interval }) => {
      const gap = interval / perInterval
      // A step near the golden section scatters the keys. If it has no common divisor with their number, it reaches all of them.
      let step = Math.max(1, Math.round(keys * 0.618))
      while (greatestCommonDivisor(step, keys) > 1) step++
      let index = 0
      return {
        time: random.exponential() * gap,
        key: `${prefix}${index}`,
        cost: 1,
        advance() {
          this.time += random.exponential() * gap
          index = (index + step) % keys
          this.key = `${prefix}${index}`
        },
      }
    },
  }
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other)
}

/** Merges several loads. */
export function together(...loads: readonly Load[]): Load {
  return {
    name: loads.map((load) => load.name).join(' with '),
    start: (context) => {
      const parts = loads.map((load, index) => load.start({ ...context, random: context.random.stream(index) }))
      return new Merged(parts)
    },
  }
}

class Merged implements Arrivals {
  time = 0
  key = ''
  cost = 1
  readonly #parts: readonly Arrivals[]
  #current: Arrivals | undefined

  constructor(parts: readonly Arrivals[]) {
    this.#parts = parts
    this.advance()
  }

  advance(): void {
    this.#current?.advance()
    let first: Arrivals | undefined
    for (const part of this.#parts) if (first === undefined || part.time < first.time) first = part
    this.#current = first
    this.time = first?.time ?? Number.POSITIVE_INFINITY
    this.key = first?.key ?? ''
    this.cost = first?.cost ?? 1
  }
}
