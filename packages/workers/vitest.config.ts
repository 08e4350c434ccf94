import { weirTests } from '@weir/tooling/vitest'

// Tests in workerd, the runtime of Cloudflare Workers, run on real time, as most others here.
export default weirTests({ test: { hookTimeout: 60_000, testTimeout: 30_000 } })
