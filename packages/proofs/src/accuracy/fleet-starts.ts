import { createThrottler } from '@weir/core'
import { type Balancing, type Figures, type NodeContext, poisson, type SimulatedNode, simulate, summarize } from '@weir/testing'
import { atMost, type Goal, percent } from './goal.ts'
import { ALGORITHMS } from './hangs.ts'
import { MIDDLE, nameOf } from './settings.ts'

/** Milliseconds in which all processes start. */
const WITHIN = 100

/** A deploy under load. */
export const fleetGoals: readonly Goal[] = [
  {
    id: 'H3',
    title: 'A fleet starts within 100 ms under x100',
    cases: (size) =>
      ALGORITHMS.flatMap(({ name, policy, overshoot }) =>
        [12, 50].map((nodes) => ({
          name: `${name}, ${nodes} nodes, ${nameOf(MIDDLE)}`,
          scenarios: [],
          judge: () => [],
          measure: async (seed) => {
            const worst: number[] = []
            for (let start = 0; start < size.intervals; start++)
              worst.push(overshoot(await starts(policy, nodes, seed * 1_000 + start)).max)
            const { p95, max } = summarize(worst)
            // The bounds are those of rows 7 and S7, and of B10 for buckets, which is for 12 processes.
            const many = name === 'bucket' && nodes > 12
            return [
              atMost('overshoot p95', percent(p95), many ? 6 : ({ fixed: 3.5, sliding: 4, bucket: 5 } as const)[name]),
              atMost('overshoot max', percent(max), many ? 8 : 6),
            ]
          },
        })),
      ),
  },
]

/** Simulates one start. The flood begins with the first process. */
function starts(policy: object, nodes: number, seed: number): Promise<Figures> {
  // The start is a fraction of an interval, chosen so that no boundary falls into the start.
  const begin = (seed * 0.6180339887498949) % 0.9
  const startOf = (place: number): number => begin * MIDDLE.interval + (place * WITHIN) / nodes
  const flood = { ...poisson((position) => (position < begin ? { times: 0, until: begin } : { times: 100, until: 2 })), name: 'x100' }
  return simulate({
    policy: { ...MIDDLE, ...policy },
    nodes,
    seed,
    boot: 0,
    warmup: 0,
    intervals: 1,
    load: flood,
    balancing: amongStarted(startOf),
    node: (context) => startedAt(context, startOf(context.place)),
  })
}

/** Chooses any process that has started. */
function amongStarted(startOf: (place: number) => number): Balancing {
  return {
    name: 'uniform among those that have started',
    start: ({ random }) => {
      return (nodes, time) => {
        let started = 1
        while (started < nodes && startOf(started) <= time) started++
        return Math.floor(random.next() * started)
      }
    },
  }
}

function startedAt({ policy, store, clock, random, time }: NodeContext, at: number): SimulatedNode {
  const throttler = createThrottler({ policies: [policy], store, clock, random })
  throttler.on('warning', () => {})
  return {
    nodeId: throttler.nodeId,
    check: (key, cost) => throttler.check(key, cost),
    close: () => throttler.close(),
    start: () => void clock.setTimeout(() => throttler.start(), at - time.now),
  }
}
