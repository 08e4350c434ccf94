import { fileURLToPath } from 'node:url'
import { defineConfig, mergeConfig } from 'vitest/config'

/** The private condition in `exports` under which our packages resolve to their sources. */
export const SOURCE_CONDITION = '@weir/source'

/** A setup file for tests whose outcome does not depend on time: those beside them need not wait for the processor. */
export const LOW_PRIORITY = fileURLToPath(new URL('./low-priority.js', import.meta.url))

/**
 * The vitest configuration of every package: sources instead of builds, and a summary file for the root `test` script.
 *
 * @param {import('vitest/config').ViteUserConfig} [overrides]
 * @returns {import('vitest/config').ViteUserConfig}
 */
export function weirTests(overrides = {}) {
  const base = defineConfig({
    resolve: { conditions: [SOURCE_CONDITION] },
    ssr: { resolve: { conditions: [SOURCE_CONDITION] } },
    test: {
      include: ['{src,test}/**/*.test.ts'],
      passWithNoTests: true,
      // On a machine that does many things besides, a test of a second may take ten.
      testTimeout: 60_000,
      hookTimeout: 60_000,
      reporters: ['default', fileURLToPath(new URL('./summary-reporter.js', import.meta.url))],
    },
  })
  return mergeConfig(base, overrides)
}
