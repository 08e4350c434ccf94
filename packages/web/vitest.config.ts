import { weirTests } from '@weir/tooling/vitest'

// Two workers, because tests with a store wait for real time. The other file runs in the meantime.
export default weirTests({ test: { maxWorkers: 2 } })
