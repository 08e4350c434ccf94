import { weirTests } from '@weir/tooling/vitest'

// Real servers of its own for each file, on free ports. Most of the time is waiting, for a failover for example: meanwhile another file runs.
export default weirTests({ test: { testTimeout: 30_000, hookTimeout: 60_000, maxWorkers: 2 } })
