import { weirTests } from '@weir/tooling/vitest'

// Two workers suffice, because most of the time is spent waiting for programs to start and end.
export default weirTests({ test: { maxWorkers: 2 } })
