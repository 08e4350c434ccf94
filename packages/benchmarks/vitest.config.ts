import { weirTests } from '@weir/tooling/vitest'

const REAL_TIME = ['test/*.test.ts', 'test/real-processes/**']
/** In virtual time, which nothing beside them can disturb. */
const SIMULATED = ['test/goals/**', 'test/mutations/**']

// What runs in real time wants the machine for itself, one file after the other; then the simulations, on two cores.
export default weirTests({
  test: {
    projects: [
      { extends: true, test: { name: 'real time', exclude: SIMULATED, sequence: { groupOrder: 0 }, maxWorkers: 1 } },
      { extends: true, test: { name: 'simulated', exclude: REAL_TIME, sequence: { groupOrder: 1 }, maxWorkers: 2 } },
    ],
  },
})
