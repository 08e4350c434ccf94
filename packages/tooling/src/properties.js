// Replaces `fast-check` in tests (see vitest.js). It is the same module, with the seed of this run for every property.
import { appendFileSync } from 'node:fs'
import fc from 'fast-check'
import { SEED } from './seed.js'

/** The file for the number of cases of each property. `pnpm explore` adds them up. */
const counts = process.env['WEIR_CASES']

fc.configureGlobal({ seed: SEED, ...(counts !== undefined && { reporter: (details) => counted(details, counts) }) })

/**
 * @param {import('fast-check').RunDetails<unknown>} details
 * @param {string} file
 */
function counted(details, file) {
  appendFileSync(file, `${details.numRuns}\n`)
  // This reporter replaces the one of fast-check, which throws, so it must throw too.
  if (details.failed) throw new Error(String(fc.defaultReportMessage(details)), { cause: details.errorInstance })
}

export * from 'fast-check'
export default fc
