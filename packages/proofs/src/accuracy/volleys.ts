import { bursts, type Scenario } from '@weir/testing'
import { mostAllowed, reactionTime } from './attack/bound.ts'
import { atLeast, atMost, type Goal, type Size } from './goal.ts'

/** The interval, in milliseconds. */
const INTERVAL = 10_000
/** Requests of a volley, and the milliseconds in which they arrive. */
const VOLLEY = 1_000
const WIDTH = 10
/** The requests of a volley within the reaction time to a store with a round trip of 1 ms. */
const PEAK = Math.ceil((VOLLEY * reactionTime(1)) / WIDTH)

/** Many requests at the same moment, on small limits. */
export const volleyGoals: readonly Goal[] = [
  {
    id: 'N5',
    title: 'A thousand requests within 10 ms, on small limits',
    cases: (size) =>
      [1, 5, 20, 100].flatMap((limit) =>
        [3, 12, 50].flatMap((nodes) =>
          ([undefined, 'leased', 'central'] as const).map((exact) => ({
            name: `${limit} per 10 s, ${nodes} nodes${exact ? `, ${exact}` : ''}`,
            scenarios: [volleys(limit, nodes, exact, size)],
            judge: (results) => {
              const most = Math.max(...results.flatMap(({ measured }) => measured.map(({ allowed }) => allowed)))
              const bound = exact ? limit : mostAllowed({ window: 'fixed', limit, nodes, largest: 1, peak: PEAK })
              return [atLeast('allowed', most, limit, 'units'), atMost('allowed', most, bound, 'units')]
            },
          })),
        ),
      ),
  },
]

/** One volley in every other interval, so that each meets an idle key. */
function volleys(limit: number, nodes: number, exact: 'leased' | 'central' | undefined, { intervals }: Size): Scenario {
  return {
    policy: { limit, interval: INTERVAL, ...(exact && { coordination: exact, failMode: 'closed' }) },
    nodes,
    warmup: 0,
    intervals,
    load: bursts({ size: VOLLEY, every: 2, phase: 0.3, width: WIDTH }),
  }
}
