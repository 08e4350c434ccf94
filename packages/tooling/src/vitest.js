import { fileURLToPath } from 'node:url'
import { defineConfig, mergeConfig } from 'vitest/config'
import { bundledSources } from './bundled-sources.js'
import { SOURCE_CONDITION } from './workspace.js'

/** @type {(file: string) => string} */
const own = (file) => fileURLToPath(new URL(file, import.meta.url))

/** A setup file for tests that don't depend on time, so that tests beside them need not wait for the processor. */
export const LOW_PRIORITY = own('./low-priority.js')

const PROPERTIES = own('./properties.js')

/**
 * Replaces `fast-check` with `properties.js` in tests, so that no property has a random seed. A setup file would load fast-check even for
 * the many files that don't use it.
 *
 * @type {import('vitest/config').Plugin}
 */
const seededProperties = {
  name: 'weir-seeded-properties',
  enforce: 'pre',
  resolveId: (source, importer) => (source === 'fast-check' && importer !== PROPERTIES ? PROPERTIES : undefined),
}

/**
 * The vitest configuration of every package: sources instead of builds, fixed seeds, and a summary file for the root `test` script.
 *
 * @param {import('vitest/config').ViteUserConfig} [overrides]
 * @returns {import('vitest/config').ViteUserConfig}
 */
export function weirTests(overrides = {}) {
  const base = defineConfig({
    plugins: [seededProperties, bundledSources()],
    resolve: { conditions: [SOURCE_CONDITION] },
    ssr: { resolve: { conditions: [SOURCE_CONDITION] } },
    test: {
      include: ['{src,test}/**/*.test.ts'],
      passWithNoTests: true,
      setupFiles: [own('./seeded-random.js'), own('./within-an-interval.js'), own('./quiet-warnings.js')],
      // On a busy machine, a test of one second may take ten.
      testTimeout: 60_000,
      hookTimeout: 60_000,
      // The same applies to conditions that a test waits for.
      expect: { poll: { timeout: 30_000 } },
      // Fake time begins at the start of an interval. Otherwise an interval would sometimes end between two requests of a test.
      fakeTimers: { now: Date.parse('2027-03-01T10:00:00Z') },
      reporters: ['default', own('./summary-reporter.js')],
    },
  })
  return mergeConfig(base, overrides)
}
