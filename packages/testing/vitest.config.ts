import { weirTests } from '@weir/tooling/vitest'

// Simulations are seconds of work, on machines that others use too; sources are loaded once for all files.
export default weirTests({ test: { testTimeout: 60_000, isolate: false } })
