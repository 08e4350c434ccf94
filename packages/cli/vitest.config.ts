import { weirTests } from '@weir/tooling/vitest'

// A replay is all work, and takes its time on a busy machine.
export default weirTests({ test: { testTimeout: 60_000 } })
