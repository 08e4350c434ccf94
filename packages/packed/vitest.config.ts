import { weirTests } from '@weir/tooling/vitest'

export default weirTests({ test: { testTimeout: 60_000, hookTimeout: 180_000 } })
