import { weirTests } from '@weir/tooling/vitest'

// Simulations are seconds of work, on machines that others use too.
export default weirTests({ test: { testTimeout: 60_000 } })
