import { type BudgetOptions, budgetModel } from './budgets.ts'
import type { Model, Path } from './search.ts'
import { type SlotOptions, slotModel } from './slots.ts'
import { leaseModel, type ModelOptions } from './world.ts'

/** One search: its model, and bounds for its events. */
export interface Search {
  readonly name: string
  /** The numbers of its model, for the output. */
  readonly about: string
  readonly model: Model<{ readonly path: Path }>
}

function quota(name: string, options: ModelOptions): Search {
  return search(name, options, leaseModel(options))
}

function slots(name: string, options: SlotOptions): Search {
  return search(`slots: ${name}`, options, slotModel(options))
}

function budgets(name: string, options: BudgetOptions): Search {
  return search(`budgets: ${name}`, options, budgetModel(options))
}

function search<World extends { readonly path: Path }>(name: string, options: object, model: Model<World>): Search {
  const about = Object.entries(options).map(([what, count]) => `${what} ${count}`)
  return { name, about: about.join(', '), model: model as unknown as Search['model'] }
}

const STILL = { crashes: 0, refunds: 0, intervals: 1, ticks: 3, losses: 0, returns: Number.POSITIVE_INFINITY } as const
const HELD = { crashes: 0, lifetime: 2 } as const

/** Searches of seconds each, for the tests and for mutations. */
export const SHORT: readonly Search[] = [
  quota('two nodes', { ...STILL, nodes: 2, limit: 2, messages: 2, refunds: 1 }),
  quota('a crash', { ...STILL, nodes: 2, limit: 2, messages: 2, crashes: 1 }),
  quota('a change of the interval', { ...STILL, nodes: 1, limit: 1, messages: 2, intervals: 2, ticks: 2 }),
  // With a limit of 1 nothing would be left to grant once a loss is noticed.
  quota('a loss of data', { ...STILL, nodes: 2, limit: 2, messages: 1, losses: 1, returns: 0 }),
  slots('two nodes', { ...HELD, nodes: 2, limit: 1, messages: 2, starts: 2, moments: 1 }),
  slots('silence', { ...HELD, nodes: 2, limit: 1, messages: 2, starts: 0, moments: 3, lifetime: 1 }),
  slots('silence of a busy node', { ...HELD, nodes: 2, limit: 1, messages: 1, starts: 1, moments: 4 }),
  slots('a crash', { ...HELD, nodes: 2, limit: 1, messages: 1, starts: 1, moments: 3, crashes: 1 }),
  budgets('a crash', { nodes: 2, limit: 2, messages: 1, crashes: 1, reserves: 2, uses: 1, moments: 3 }),
  budgets('a call that uses more', { nodes: 2, limit: 3, messages: 1, crashes: 1, reserves: 1, uses: 3, moments: 3 }),
]

/** Searches of millions of states. */
export const LONG: readonly Search[] = [
  quota('three nodes', { ...STILL, nodes: 3, limit: 4, messages: 3 }),
  quota('three nodes, a crash', { ...STILL, nodes: 3, limit: 4, messages: 2, crashes: 1 }),
  quota('two nodes, crashes and refunds', { ...STILL, nodes: 2, limit: 3, messages: 3, crashes: 1, refunds: 1 }),
  quota('two nodes, a change of the interval', { ...STILL, nodes: 2, limit: 1, messages: 2, intervals: 2, ticks: 2 }),
  quota('two nodes, a change of the interval and a crash', {
    ...STILL,
    nodes: 2,
    limit: 2,
    messages: 1,
    crashes: 1,
    intervals: 2,
    ticks: 2,
  }),
  quota('three nodes, a change of the interval', { ...STILL, nodes: 3, limit: 2, messages: 1, intervals: 2, ticks: 2 }),
  quota('three nodes, a change of the interval and a crash', {
    ...STILL,
    nodes: 3,
    limit: 1,
    messages: 1,
    crashes: 1,
    intervals: 2,
    ticks: 2,
  }),
  quota('two nodes, a loss of data', { ...STILL, nodes: 2, limit: 2, messages: 1, losses: 1, returns: 1 }),
  quota('two nodes, a loss of data and a crash', { ...STILL, nodes: 2, limit: 1, messages: 1, crashes: 1, losses: 1, returns: 0 }),
  quota('three nodes, a loss of data', { ...STILL, nodes: 3, limit: 1, messages: 1, losses: 1, returns: 0 }),
  slots('three nodes', { ...HELD, nodes: 3, limit: 2, messages: 1, starts: 2, moments: 1 }),
  slots('a longer silence', { ...HELD, nodes: 2, limit: 1, messages: 2, starts: 0, moments: 3 }),
  budgets('two messages', { nodes: 2, limit: 2, messages: 2, crashes: 1, reserves: 1, uses: 1, moments: 3 }),
  budgets('two reservations', { nodes: 2, limit: 3, messages: 1, crashes: 1, reserves: 2, uses: 3, moments: 4 }),
]
