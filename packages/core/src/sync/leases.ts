// What policies need that take quota ahead, in one file of its own: it is loaded with the first of them.
export { LeaseMeter } from '../algorithms/fixed-window/leases/meter.ts'
export { WaitingDecisions } from '../decide/waiting.ts'
