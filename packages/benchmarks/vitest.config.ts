import { LOW_PRIORITY, weirTests } from '@weir/tooling/vitest'

const REAL_TIME = ['test/*.test.ts', 'test/real-processes/**', 'test/migration/**']
/** In virtual time, which nothing beside them can disturb. */
const SIMULATED = ['test/goals/**', 'test/simulated/**']
/** The same, of sources that are changed. */
const MUTATIONS = ['test/mutations/**']
/** A simulation takes a second or two; beside suites that want all of the processor it takes minutes. */
const PATIENCE = 900_000

const BESIDE = {
  sequence: { groupOrder: 1 },
  maxWorkers: 2,
  setupFiles: [LOW_PRIORITY],
  testTimeout: PATIENCE,
}

// What runs in real time wants the machine for itself, one file after the other. The simulations are a suite of their own: they run
// beside all others, with what these leave of the processor.
export default weirTests({
  test: {
    projects: [
      { extends: true, test: { name: 'real-time', exclude: [...SIMULATED, ...MUTATIONS], sequence: { groupOrder: 0 }, maxWorkers: 1 } },
      // Simulations leave nothing behind: sources loaded and compiled for one file serve all others.
      { extends: true, test: { ...BESIDE, name: 'simulated', exclude: [...REAL_TIME, ...MUTATIONS], isolate: false } },
      // Each mutant stays loaded as long as its worker lives.
      { extends: true, test: { ...BESIDE, name: 'mutations', exclude: [...REAL_TIME, ...SIMULATED] } },
    ],
  },
})
