import { weirTests } from '@weir/tooling/vitest'

// Real servers. All files run one after the other in one process, so that they share one: to make one takes seconds.
export default weirTests({ test: { hookTimeout: 90_000, fileParallelism: false, isolate: false } })
