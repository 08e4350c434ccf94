import { weirTests } from '@weir/tooling/vitest'

// Sources are loaded once for all files: that takes longer than the tests.
export default weirTests({ test: { isolate: false } })
