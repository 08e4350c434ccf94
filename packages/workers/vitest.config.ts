import { weirTests } from '@weir/tooling/vitest'

// Tests in workerd, the runtime of Cloudflare Workers, run on real time. Most of it is waiting: meanwhile another file runs.
export default weirTests({ test: { maxWorkers: 3 } })
