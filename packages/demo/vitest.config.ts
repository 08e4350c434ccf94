import { weirTests } from '@weir/tooling/vitest'

// Most of the time is waiting for a demo that runs.
export default weirTests({ test: { maxWorkers: 2, globalSetup: ['./test/support/programs.ts'] } })
