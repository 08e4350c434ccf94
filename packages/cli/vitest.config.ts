import { weirTests } from '@weir/tooling/vitest'

// A replay needs much CPU time, so it is slow on a busy machine.
export default weirTests({ test: { testTimeout: 60_000 } })
