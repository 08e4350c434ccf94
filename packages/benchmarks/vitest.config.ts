import { LOW_PRIORITY, weirTests } from '@weir/tooling/vitest'

const REAL_TIME = ['test/*.test.ts', 'test/real-processes/**', 'test/migration/**']
/** In virtual time, which nothing beside them can disturb. */
const SIMULATED = ['test/goals/**', 'test/mutations/**', 'test/simulated/**']
/** A simulation takes a second or two; beside suites that want all of the processor it takes minutes. */
const PATIENCE = 900_000

// What runs in real time wants the machine for itself, one file after the other. The simulations are a suite of their own: they run
// beside all others, with what these leave of the processor.
export default weirTests({
  test: {
    projects: [
      { extends: true, test: { name: 'real-time', exclude: SIMULATED, sequence: { groupOrder: 0 }, maxWorkers: 1 } },
      {
        extends: true,
        test: {
          name: 'simulated',
          exclude: REAL_TIME,
          sequence: { groupOrder: 1 },
          maxWorkers: 2,
          setupFiles: [LOW_PRIORITY],
          testTimeout: PATIENCE,
        },
      },
    ],
  },
})
