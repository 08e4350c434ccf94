import { weirTests } from '@weir/tooling/vitest'

// Real servers: a failover takes seconds, and two sets of servers at once would only slow each other down.
export default weirTests({ test: { testTimeout: 30_000, hookTimeout: 60_000, fileParallelism: false } })
