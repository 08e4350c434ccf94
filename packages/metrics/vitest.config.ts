import { weirTests } from '@weir/tooling/vitest'

// Sources are loaded once for all files, because loading takes longer than the tests.
export default weirTests({ test: { isolate: false } })
