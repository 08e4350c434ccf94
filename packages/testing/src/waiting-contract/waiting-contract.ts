import type { TestRunner } from '../store-contract/store-contract.ts'
import { boundCases } from './bounds.ts'
import { endingCases } from './endings.ts'
import { virtualFixture, type WaitingCase, WaitingRun } from './run.ts'
import type { WaitingUnderTest } from './subject.ts'
import { turnCases } from './turns.ts'

/** Milliseconds that one case may take. */
const LONGEST = 120_000

/** The test runner, and the cases to skip. */
export interface WaitingContractOptions extends TestRunner {
  /**
   * Skips these cases, by their titles, and gives the reason of each.
   *
   * @default none
   */
  readonly without?: Readonly<Record<string, string>>
}

/**
 * The test suite of waiting requests: it checks that `acquire`, `schedule` and `wrap` keep their promises with an algorithm, a
 * coordination and a store. Use it for your own algorithm or store.
 *
 * @example
 * ```ts
 * import { describe, test } from 'vitest'
 *
 * waitingContract('everySecond', { algorithm: everySecond(), coordination: 'local' }, { describe, test })
 * ```
 *
 * @param name - the name of the algorithm or store, for the titles of the tests
 * @param subject - the algorithm, the coordination, and a function that makes the store
 */
export function waitingContract(name: string, subject: WaitingUnderTest, { describe, test, without = {} }: WaitingContractOptions): void {
  const cases: readonly WaitingCase[] = [...turnCases, ...boundCases, ...endingCases]
  const unknown = Object.keys(without).filter((title) => !cases.some((one) => one.title === title))
  if (unknown.length > 0) throw new Error(`The waiting contract has no case "${unknown.join('", "')}".`)
  describe(`${name} keeps the waiting contract`, () => {
    for (const { title, needs, run } of cases) {
      if (without[title] !== undefined || (needs !== undefined && subject.coordination === 'local')) continue
      // Processes that sync only at the ends of spans don't take turns. Slots are released one by one.
      if (needs === 'turns' && (subject.coordination === 'periodic' || subject.algorithm.slots !== undefined)) continue
      test(
        title,
        async () => {
          const fixture = await (subject.fixture ?? virtualFixture)()
          if (needs === 'store' && fixture.goAway === undefined) return await fixture.close?.()
          const course = new WaitingRun(subject, fixture)
          try {
            await run(course)
          } finally {
            await course.end()
          }
        },
        LONGEST,
      )
    }
  })
}
