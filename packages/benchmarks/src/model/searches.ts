import type { ModelOptions } from './world.ts'

/** One search: what it is about, and how much may happen in it. */
export interface Search extends ModelOptions {
  readonly name: string
}

const STILL = { crashes: 0, refunds: 0, intervals: 1, ticks: 3 } as const

/** Seconds each: in the tests, and for mutations. */
export const SHORT: readonly Search[] = [
  { ...STILL, name: 'two nodes', nodes: 2, limit: 2, messages: 2, refunds: 1 },
  { ...STILL, name: 'a crash', nodes: 2, limit: 2, messages: 2, crashes: 1 },
  { ...STILL, name: 'a change of the interval', nodes: 1, limit: 1, messages: 2, intervals: 2, ticks: 2 },
]

/** Millions of states. */
export const LONG: readonly Search[] = [
  { ...STILL, name: 'three nodes', nodes: 3, limit: 4, messages: 3 },
  { ...STILL, name: 'three nodes, a crash', nodes: 3, limit: 4, messages: 2, crashes: 1 },
  { ...STILL, name: 'two nodes, crashes and refunds', nodes: 2, limit: 3, messages: 3, crashes: 1, refunds: 1 },
  { ...STILL, name: 'two nodes, a change of the interval', nodes: 2, limit: 1, messages: 2, intervals: 2, ticks: 2 },
  {
    ...STILL,
    name: 'two nodes, a change of the interval and a crash',
    nodes: 2,
    limit: 2,
    messages: 1,
    crashes: 1,
    intervals: 2,
    ticks: 2,
  },
]
