import { weirTests } from '@weir/tooling/vitest'

// The page as it is now, not as it was at the last build. Nothing here depends on how long it takes.
export default weirTests({ test: { globalSetup: ['./build.js'], testTimeout: 120_000 } })
