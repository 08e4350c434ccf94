import { weirTests } from '@weir/tooling/vitest'

// Each file starts workerd, the runtime of Cloudflare Workers.
export default weirTests({ test: { hookTimeout: 60_000, testTimeout: 30_000, fileParallelism: false } })
