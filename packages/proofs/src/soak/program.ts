import { input, report } from '@weir/bench/child'
import { type SoakRun, soak } from './soak.ts'

/** The input of the program. */
export type SoakInput = readonly SoakRun[]

// Each run prints one line as soon as it has ended.
for (const run of input<SoakInput>()) report(await soak(run))
process.exit(0)
