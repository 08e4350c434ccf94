import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @import { Reporter } from 'vitest/reporters'
 * @import { TestModule, Vitest } from 'vitest/node'
 */

/** Where a package's run leaves its counts for the root `test` script. */
export const SUMMARY_FILE = '.vitest-summary.json'

/**
 * Counts what passed and failed. A file that can't be loaded and an error outside any test count as failures too, which vitest's own totals leave out.
 *
 * @implements {Reporter}
 */
export default class SummaryReporter {
  #directory = process.cwd()

  /** @param {Vitest} vitest */
  onInit(vitest) {
    this.#directory = vitest.config.root
  }

  /**
   * @param {ReadonlyArray<TestModule>} modules
   * @param {ReadonlyArray<unknown>} unhandledErrors
   */
  onTestRunEnd(modules, unhandledErrors) {
    const summary = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') summary.passed++
        else if (state === 'skipped') summary.skipped++
        else summary.failed++
      }
      summary.failed += module.errors().length
      for (const suite of module.children.allSuites()) summary.failed += suite.errors().length
    }
    writeFileSync(join(this.#directory, SUMMARY_FILE), `${JSON.stringify(summary)}\n`)
  }
}
