import { weirTests } from '@weir/tooling/vitest'

// Tests that measure want the machine for themselves, one file after the other.
export default weirTests({ test: { maxWorkers: 1 } })
