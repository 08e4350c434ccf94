import { boundedOnce } from '../keys/key-text.ts'
import { Recent } from '../keys/recent.ts'
import { invalidOption, missingOption } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'

/** Options of `learnedEstimate`. */
export interface LearnedEstimateOptions {
  /**
   * Sets the cost of one unit that a call uses and didn't reserve, because others were allowed too early: a number > 0. Only its ratio to
   * `overageCost` matters.
   */
  readonly underageCost: number
  /** Sets the cost of one unit that a call reserved and doesn't use, because others had to wait for it: a number > 0. */
  readonly overageCost: number
  /** Sets the most output of a call, for calls without a valid maximum of their own: a whole number of at least 1. */
  readonly maxOutput: number
}

/** Estimates the units of calls by the outputs of earlier ones. */
export interface LearnedEstimate {
  /**
   * The units to reserve for a call: its input, and as much output as `underageCost` and `overageCost` make worthwhile. That is never more
   * than the maximum, and is the maximum until enough calls of this kind have ended: ten are then expected to use more.
   *
   * @param kind the kind of call, such as the model. Kinds are learned separately
   * @param call.input the input, a whole number
   * @param call.max the call's own maximum of output. Of several, such as `[max_tokens, max_completion_tokens]`, the largest counts.
   * Anything but whole numbers of at least 0 is ignored, so that you can pass fields of a request as they are
   */
  estimate(kind: string, call: { readonly input: number; readonly max?: unknown }): number
  /**
   * Learns the output of a call that has ended.
   *
   * @param output a number of at least 0. Anything else is ignored
   * @param call any object that stands for the call, such as its response. A later output of the same call replaces the earlier one
   */
  learn(kind: string, output: number, call?: object): void
}

/** Kinds in each of two generations. Each takes 1.5 KB. */
const KINDS = 250
/** Buckets for each doubling. Their bounds are 4.5 % apart. */
const PER_DOUBLING = 16
/** Larger outputs count as 2^24. */
const DOUBLINGS = 24
/** Above this number of calls all counts are halved, so that the last one to two thousand calls matter. */
const MOST_CALLS = 2_000
/** Calls that are expected above the quantile before it is used. */
const CALLS_ABOVE = 10
const OPTIONS: readonly string[] = ['underageCost', 'overageCost', 'maxOutput'] satisfies (keyof LearnedEstimateOptions)[]

/**
 * Learns how much output calls have, so that you don't reserve the maximum that most calls don't use.
 *
 * The estimate is the q-quantile of the outputs of this kind with `q = underageCost / (underageCost + overageCost)`, which minimises the
 * expected cost. This is the critical fractile of the newsvendor problem (Arrow, Harris and Marschak 1951, Econometrica 19). For 4 and 1
 * four of five calls use at most their estimate. The result is up to 4.5 % above the quantile, never below it.
 *
 * It learns in memory, for up to 250 to 500 kinds, of which the least recently used ones are forgotten.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_MISSING_OPTION`
 * @example
 * const output = learnedEstimate({ underageCost: 4, overageCost: 1, maxOutput: 64_000 })
 * const tokens = output.estimate(model, { input, max: [body.max_tokens, body.max_completion_tokens] })
 * @see `@weir/core/docs/guides/budgets.md`
 */
export function learnedEstimate(options: LearnedEstimateOptions): LearnedEstimate {
  checkOptions('learnedEstimate', options, OPTIONS, 'options such as { underageCost: 4, overageCost: 1, maxOutput: 64_000 }')
  const { underageCost, overageCost, maxOutput } = options
  for (const [name, value] of Object.entries({ underageCost, overageCost })) {
    if (value === undefined) throw missingOption(name, `Add ${name}: 1, for example.`)
    if (!(typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY)) throw invalidOption(name, value, 'a number > 0')
  }
  if (maxOutput === undefined) throw missingOption('maxOutput', 'Add the most output that your models generate, such as maxOutput: 64_000.')
  if (!(Number.isSafeInteger(maxOutput) && maxOutput >= 1)) throw invalidOption('maxOutput', maxOutput, 'a whole number of at least 1')
  const quantile = underageCost / (underageCost + overageCost)
  const fewest = Math.min(MOST_CALLS / 2, (CALLS_ABOVE * (underageCost + overageCost)) / overageCost)
  const kinds = new Recent<Outputs>(KINDS)
  const counted = new WeakMap<object, { readonly outputs: Outputs; readonly bucket: number }>()
  return {
    estimate(kind, { input, max }) {
      const valid = (Array.isArray(max) ? max : [max]).filter((one) => Number.isSafeInteger(one) && one >= 0)
      const most = valid.length === 0 ? maxOutput : Math.max(...valid)
      const outputs = kinds.get(boundedOnce(kind))
      return input + Math.min(most, outputs?.quantile(quantile, fewest) ?? most)
    },
    learn(kind, output, call) {
      if (!(typeof output === 'number' && output >= 0 && output < Number.POSITIVE_INFINITY)) return
      const name = boundedOnce(kind)
      const outputs = kinds.get(name) ?? new Outputs()
      kinds.set(name, outputs)
      const earlier = call && counted.get(call)
      if (earlier !== undefined) earlier.outputs.remove(earlier.bucket)
      const bucket = outputs.add(output)
      if (call !== undefined) counted.set(call, { outputs, bucket })
    },
  }
}

/** The outputs of one kind: counts in buckets, each of which ends at a power of 2^(1/16). */
class Outputs {
  readonly #counts = new Float32Array(PER_DOUBLING * DOUBLINGS + 1)
  #total = 0

  /** @returns the bucket, for `remove` */
  add(output: number): number {
    const bucket = Math.min(this.#counts.length - 1, Math.ceil(PER_DOUBLING * Math.log2(Math.max(1, output))))
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.#total++
    if (this.#total < MOST_CALLS) return bucket
    this.#total = 0
    for (const [i, count] of this.#counts.entries()) {
      this.#counts[i] = count / 2
      this.#total += count / 2
    }
    return bucket
  }

  remove(bucket: number): void {
    // The count may have been halved.
    const one = Math.min(1, this.#counts[bucket] as number)
    this.#counts[bucket] = (this.#counts[bucket] as number) - one
    this.#total -= one
  }

  /** @param fewest calls without which it is undefined */
  quantile(q: number, fewest: number): number | undefined {
    if (this.#total < fewest) return undefined
    let left = q * this.#total
    let last = 0
    for (const [bucket, count] of this.#counts.entries()) {
      if (count > 0) last = bucket
      left -= count
      if (left <= 0) break
    }
    return Math.floor(2 ** (last / PER_DOUBLING))
  }
}
