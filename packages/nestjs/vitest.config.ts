import { weirTests } from '@weir/tooling/vitest'

// With a store real time has to pass: meanwhile the other file runs.
export default weirTests({ test: { maxWorkers: 2 } })
