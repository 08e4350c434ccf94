import { crashing, killed } from './budgets/crashes.ts'
import { race } from './budgets/race.ts'
import { utilisation, WAYS } from './budgets/utilisation.ts'
import type { Figure, Goal, GoalCase } from './goal.ts'

const KEPT = ['leased', 'central'] as const
/** Reservations with random crashes. With `--quick` the number depends on `--intervals`. */
const RESERVATIONS = 1_000_000
const PER_INTERVAL = 1_000

/** Goals of reservations. */
export const budgetGoals: readonly Goal[] = [
  {
    id: 'R1',
    title: 'Reservations: 100 calls of 50 to 150 units at 8 processes, 5000 per 10 s',
    cases: ({ intervals }) =>
      ([...KEPT, 'background'] as const).flatMap((coordination) =>
        [1, 1_000].map((width) =>
          measured(`${coordination}, all begin within ${width} ms`, (seed) => race(coordination, width, intervals, seed)),
        ),
      ),
  },
  {
    id: 'R2',
    title: 'Reservations of a process that is killed: 1000 are open',
    cases: () => KEPT.map((coordination) => measured(coordination, (seed) => killed(coordination, seed))),
  },
  {
    id: 'R3',
    title: 'Reservations of random costs and ends, while processes crash',
    cases: ({ intervals, quick }) => {
      const count = quick ? intervals * PER_INTERVAL : RESERVATIONS
      return KEPT.map((coordination) => measured(`${coordination}, ${count} reservations`, (seed) => crashing(coordination, count, seed)))
    },
  },
  {
    id: 'R4',
    title: 'Tokens used of the limit: calls of 30 s at 1.5 times the limit, whose maximum is 4 times their use',
    cases: ({ quick }) =>
      (['bucket', 'window'] as const).flatMap((algorithm) =>
        WAYS.map((way) => measured(`${algorithm}, ${way}`, (seed) => utilisation(way, algorithm, quick ? 5 : 20, seed))),
      ),
  },
]

function measured(name: string, measure: (seed: number) => Promise<readonly Figure[]>): GoalCase {
  return { name, scenarios: [], judge: () => [], measure }
}
