import { bursts, type Scenario } from '@weir/testing'
import { mostAdmitted, reactionTime } from './attack/bound.ts'
import { atMost, type Goal, type Size } from './goal.ts'

/** Milliseconds. */
const INTERVAL = 10_000
/** Requests of a volley, within so many milliseconds. */
const VOLLEY = 1_000
const WIDTH = 10
/** Of them within the reaction time to a store that is a round trip of 1 ms away. */
const PEAK = Math.ceil((VOLLEY * reactionTime(1)) / WIDTH)

/** Many requests at the same moment, where few are allowed. */
export const volleyGoals: readonly Goal[] = [
  {
    id: 'N5',
    title: 'A thousand requests within 10 ms, on small limits',
    cases: (size) =>
      [1, 5, 20, 100].flatMap((limit) =>
        [3, 12, 50].flatMap((nodes) =>
          [false, true].map((strict) => ({
            name: `${limit} per 10 s, ${nodes} nodes${strict ? ', strict' : ''}`,
            scenarios: [volleys(limit, nodes, strict, size)],
            judge: (results) => [
              atMost(
                'admitted',
                Math.max(...results.flatMap(({ measured }) => measured.map(({ admitted }) => admitted))),
                strict && limit < STRICT_BELOW * nodes ? limit : mostAdmitted({ window: 'fixed', limit, nodes, largest: 1, peak: PEAK }),
                'units',
              ),
            ],
          })),
        ),
      ),
  },
]

/** Units per node below which each request to a strict policy waits for the store. */
const STRICT_BELOW = 2.5

/** One in every other interval, so that each finds an idle key. */
function volleys(limit: number, nodes: number, strict: boolean, { intervals }: Size): Scenario {
  return {
    policy: { limit, interval: INTERVAL, strict },
    nodes,
    strict,
    warmup: 0,
    intervals,
    load: bursts({ size: VOLLEY, every: 2, phase: 0.3, width: WIDTH }),
  }
}
