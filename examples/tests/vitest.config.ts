import { weirTests } from '@weir/tooling/vitest'

// Most of the time is waiting for programs to start and end.
export default weirTests({ test: { maxWorkers: 2 } })
