// Code for policies with leases, in one file of its own, because it is loaded with the first of them.
export { LeaseMeter } from '../algorithms/fixed-window/leases/meter.ts'
export { WaitingDecisions } from '../decide/waiting.ts'
