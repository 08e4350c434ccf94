import type { SeededRandom } from './random.ts'

/** Draws a number, e.g. a latency in milliseconds. A plain number is a constant. */
export type Distribution = number | ((random: SeededRandom) => number)

/** Returns a function that draws from a distribution. */
export function sampler(distribution: Distribution): (random: SeededRandom) => number {
  return typeof distribution === 'number' ? () => distribution : distribution
}

/** Uniform in [low, high). */
export function uniformBetween(low: number, high: number): Distribution {
  return (random) => low + random.next() * (high - low)
}

/** `base` plus an exponentially distributed part with the mean `mean`: most values are near the base, with a long tail. */
export function exponentialAbove(base: number, mean: number): Distribution {
  return (random) => base + mean * random.exponential()
}

/** Log-normal, given by its median and by sigma, the deviation of its logarithm. Measured latencies often look like this. */
export function logNormal(median: number, sigma: number): Distribution {
  return (random) => median * Math.exp(sigma * random.normal())
}

/** The weights 1, 1/2^s, 1/3^s, … of Zipf's law, scaled to a sum of 1. */
export function zipfWeights(count: number, exponent = 1): number[] {
  const raw = Array.from({ length: count }, (_, index) => (index + 1) ** -exponent)
  const sum = raw.reduce((total, weight) => total + weight, 0)
  return raw.map((weight) => weight / sum)
}

/** Draws indexes with given weights, in constant time (Walker's alias method in Vose's form). */
export class WeightedIndex {
  readonly #threshold: Float64Array
  readonly #alias: Int32Array

  constructor(weights: readonly number[]) {
    const count = weights.length
    const sum = weights.reduce((total, weight) => total + weight, 0)
    const scaled = weights.map((weight) => (weight * count) / sum)
    this.#threshold = new Float64Array(count).fill(1)
    this.#alias = Int32Array.from(scaled, (_, index) => index)
    const small: number[] = []
    const large: number[] = []
    scaled.forEach((weight, index) => {
      ;(weight < 1 ? small : large).push(index)
    })
    for (let less = small.pop(), more = large.pop(); less !== undefined && more !== undefined; less = small.pop()) {
      this.#threshold[less] = scaled[less] as number
      this.#alias[less] = more
      scaled[more] = (scaled[more] as number) + (scaled[less] as number) - 1
      if ((scaled[more] as number) < 1) {
        small.push(more)
        more = large.pop()
      }
    }
  }

  /** Draws an index. It uses one number of the stream. */
  pick(random: SeededRandom): number {
    const place = random.next() * this.#threshold.length
    const index = Math.floor(place)
    return place - index < (this.#threshold[index] as number) ? index : (this.#alias[index] as number)
  }
}
