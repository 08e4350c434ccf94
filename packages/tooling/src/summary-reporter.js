import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/**
 * @import { Reporter } from 'vitest/reporters'
 * @import { TestModule, Vitest } from 'vitest/node'
 */

/**
 * The file in which a package's run leaves its counts for the root `test` script.
 *
 * @param {string} script of its manifest: `test`, or `test:` and the name of a further suite
 */
export function summaryFile(script) {
  return `.vitest-${script.replace(':', '-')}.json`
}

/**
 * @typedef {{ file?: string, text: string }} Failure `file` within the package, if it is known
 * @typedef {{ passed: number, failed: number, skipped: number, failures: Failure[] }} Summary
 */

/** The number of characters of an error that are printed again at the end. */
const LONGEST_ERROR = 2_000

/**
 * @param {unknown} error
 * @returns {string}
 */
function told(error) {
  /** @type {{ stack?: string, message?: string, diff?: string, cause?: unknown }} */
  const { stack, message = String(error), diff = '', cause } = error ?? {}
  const own = [stack?.includes(message) === true ? stack : `${message}\n${stack ?? ''}`, diff].join('\n').trim().slice(0, LONGEST_ERROR)
  return cause === undefined ? own : `${own}\nCaused by: ${told(cause)}`
}

/**
 * Counts passed and failed tests. Unlike Vitest's own totals, it also counts files that can't be loaded and errors outside any test as
 * failures.
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
    /** @type {Summary} */
    const summary = { passed: 0, failed: 0, skipped: 0, failures: [] }
    /** @type {(file: string | undefined, title: string, errors: ReadonlyArray<unknown>) => void} */
    const fail = (file, title, errors) => {
      summary.failed++
      // The beginning is enough, because the suite's own output contains the whole error.
      const text = `${title}\n${errors.map((error) => told(error)).join('\n')}`
      summary.failures.push(file === undefined ? { text } : { file, text })
    }
    for (const error of unhandledErrors) fail(undefined, 'outside any test', [error])
    for (const module of modules) {
      const name = relative(this.#directory, module.moduleId)
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result()
        if (state === 'passed') summary.passed++
        else if (state === 'skipped') summary.skipped++
        else fail(name, `${name} > ${test.fullName}`, errors ?? [])
      }
      for (const error of module.errors()) fail(name, name, [error])
      for (const suite of module.children.allSuites())
        for (const error of suite.errors()) fail(name, `${name} > ${suite.fullName}`, [error])
    }
    writeFileSync(join(this.#directory, summaryFile(process.env['npm_lifecycle_event'] ?? 'test')), `${JSON.stringify(summary)}\n`)
  }
}
