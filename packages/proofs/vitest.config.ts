import { LOW_PRIORITY, weirTests } from '@weir/tooling/vitest'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const REAL_TIME = ['test/*.test.ts', 'test/real-processes/**', 'test/migration/**']
/** In virtual time, which nothing beside them can disturb. */
const SIMULATED = ['test/goals/**', 'test/simulated/**']
/** The same, of sources that are changed. */
const MUTATIONS = ['test/mutations/**']
/** A simulation takes a second or two; beside suites that want all of the processor it takes minutes. */
const PATIENCE = 900_000

/** It takes as long as half of the others together, which are to run beside it. */
const LONGEST = 'bounded-memory'

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => Number(b.moduleId.includes(LONGEST)) - Number(a.moduleId.includes(LONGEST)))
  }
}

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
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: 'real-time', exclude: [...SIMULATED, ...MUTATIONS], sequence: { groupOrder: 0 }, maxWorkers: 1 } },
      // Isolated, since files that are not are dealt out to the workers at the start: one of them then works alone for minutes at the end.
      { extends: true, test: { ...BESIDE, name: 'simulated', exclude: [...REAL_TIME, ...MUTATIONS] } },
      // Each mutant stays loaded as long as its worker lives. It is a bundle that Node.js loads as it is: Vite would need a second for each.
      {
        extends: true,
        test: {
          ...BESIDE,
          name: 'mutations',
          exclude: [...REAL_TIME, ...SIMULATED],
          server: { deps: { external: [/weir-mutant-/] } },
        },
      },
    ],
  },
})
