import { weirTests } from '@weir/tooling/vitest'

// Real servers: two sets of them at once would only slow each other down.
export default weirTests({ test: { hookTimeout: 60_000, fileParallelism: false } })
