export { CentralDecisions } from './decisions.ts'
export { CentralLink } from './link.ts'
export { CentralMeter } from './meter.ts'
