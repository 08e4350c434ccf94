import { weirTests } from '@weir/tooling/vitest'

// Fifty files of pure logic: loading the sources anew for each would take most of the time.
export default weirTests({ test: { isolate: false, setupFiles: ['test/support/loaded.ts'] } })
