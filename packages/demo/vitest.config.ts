import { weirTests } from '@weir/tooling/vitest'

// Most of the time the tests wait for a running demo.
export default weirTests({ test: { maxWorkers: 2, globalSetup: ['./test/support/programs.ts'] } })
