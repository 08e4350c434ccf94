import { input, report } from '../harness/child.ts'
import { type SoakRun, soak } from './soak.ts'

// One line for each, as soon as it has ended.
for (const run of input<readonly SoakRun[]>()) report(await soak(run))
process.exit(0)
