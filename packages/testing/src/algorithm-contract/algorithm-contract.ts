import { SeededRandom } from '../random/random.ts'
import type { TestRunner } from '../store-contract/store-contract.ts'
import type { AlgorithmCase } from './case.ts'
import { circumstanceCases } from './circumstances.ts'
import { correctionCases } from './corrections.ts'
import { decisionCases } from './decisions.ts'
import { hostileCases } from './hostile.ts'
import type { AlgorithmUnderTest } from './model.ts'
import { AlgorithmRun } from './run.ts'
import { stepCases } from './steps.ts'

/** Milliseconds that the runs of one case may take. */
const LONGEST = 60_000

/** Options of `algorithmContract`: the test runner, and the random runs. */
export interface AlgorithmContractOptions extends TestRunner {
  /**
   * Sets how many random runs each case makes.
   *
   * @default 50
   */
  readonly runs?: number
  /**
   * Fixes the random runs. The message of a failure contains it.
   *
   * @default the environment variable `FC_SEED`, or 1
   */
  readonly seed?: string | number
  /**
   * Repeats these seeds as well, by the title of the case that failed with them once.
   *
   * @default none
   */
  readonly examples?: Readonly<Record<string, readonly string[]>>
  /**
   * Skips these cases, by their titles, and gives the reason of each.
   *
   * @default none
   */
  readonly without?: Readonly<Record<string, string>>
}

/**
 * The test suite of an algorithm: the behaviour that it must have in one process (`coordination: 'local'`) under random requests,
 * costs and times. Each decision is compared with a model that defines the limit in plain code. If the algorithm has a `step`, it
 * must decide like the meter.
 *
 * @example
 * ```ts
 * import { describe, test } from 'vitest'
 *
 * algorithmContract('fixedWindow', { algorithm: fixedWindow(), model: (interval) => new IntervalCounter(interval) }, { describe, test })
 * ```
 *
 * @param name - the name of the algorithm, for the titles of the tests
 * @param subject - the algorithm, and a function that makes a model of one key
 */
export function algorithmContract(
  name: string,
  subject: AlgorithmUnderTest,
  { describe, test, runs = 50, seed = process.env['FC_SEED'] ?? 1, examples = {}, without = {} }: AlgorithmContractOptions,
): void {
  const cases: readonly AlgorithmCase[] = [
    ...decisionCases,
    ...correctionCases,
    ...circumstanceCases,
    ...hostileCases,
    ...(subject.algorithm.step === undefined ? [] : stepCases),
  ]
  const unknown = [...Object.keys(without), ...Object.keys(examples)].filter((title) => !cases.some((one) => one.title === title))
  if (unknown.length > 0) throw new Error(`The algorithm contract has no case "${unknown.join('", "')}".`)
  describe(`${name} keeps the algorithm contract`, () => {
    for (const one of cases) {
      if (without[one.title] !== undefined) continue
      test(
        one.title,
        async () => {
          for (const from of [seed, ...(examples[one.title] ?? [])]) {
            for (let run = 0; run < runs; run++) await runCase(one, subject, new SeededRandom(`${from}/${one.title}/${run}`), from)
          }
        },
        LONGEST,
      )
    }
  })
}

async function runCase({ run }: AlgorithmCase, subject: AlgorithmUnderTest, random: SeededRandom, seed: string | number): Promise<void> {
  const course = new AlgorithmRun(subject, random)
  try {
    await run(course)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`${reason}\n  FC_SEED=${seed}, ${course}`, { cause: error })
  } finally {
    await course.close()
  }
}
