import { LOW_PRIORITY, weirTests } from '@weir/tooling/vitest'

/** Beside suites that need all of the processor, work of half a minute takes many. */
const PATIENCE = 3_600_000

// `pnpm test` runs it beside all others, with what these leave of the processor.
export default weirTests({ test: { setupFiles: [LOW_PRIORITY], testTimeout: PATIENCE, hookTimeout: PATIENCE } })
