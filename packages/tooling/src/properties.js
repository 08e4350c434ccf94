// Stands in for `fast-check` in tests (see vitest.js): the same module, with the seed of this run for every property.
import { appendFileSync } from 'node:fs'
import fc from 'fast-check'
import { SEED } from './seed.js'

/** A file to which the number of cases of each property is appended; `pnpm explore` adds them up. */
const counts = process.env['WEIR_CASES']

fc.configureGlobal({ seed: SEED, ...(counts !== undefined && { reporter: (details) => counted(details, counts) }) })

/**
 * @param {import('fast-check').RunDetails<unknown>} details
 * @param {string} file
 */
function counted(details, file) {
  appendFileSync(file, `${details.numRuns}\n`)
  // A reporter takes the place of fast-check's own, which throws.
  if (details.failed) throw new Error(String(fc.defaultReportMessage(details)), { cause: details.errorInstance })
}

export * from 'fast-check'
export default fc
