import { LOW_PRIORITY, weirTests } from '@weir/tooling/vitest'

/** Beside suites that want all of the processor, what takes half a minute takes some. */
const PATIENCE = 900_000

// `pnpm test` runs it beside all others, with what these leave of the processor.
export default weirTests({ test: { setupFiles: [LOW_PRIORITY], testTimeout: PATIENCE, hookTimeout: PATIENCE } })
