import { weirTests } from '@weir/tooling/vitest'

export default weirTests({ test: { testTimeout: 30_000 } })
