import { type Fault, type FaultPlan, moving, poisson, uniformBetween } from '@weir/testing'
import { atMost, type Goal, percent, pooled } from './goal.ts'
import { MIDDLE, nameOf, scenarioOf } from './settings.ts'
import { WINDOWS } from './weights.ts'

const DAY = 86_400_000

/** Stores that hang or are far away, processes that are killed, clients that move. */
export const hangAndKillGoals: readonly Goal[] = [
  {
    id: 'N2',
    title: 'The store hangs for 2 s; answers that are late',
    cases: (size) =>
      WINDOWS.flatMap(({ name, policy, overshoot }) => [
        {
          name: `${name}, it hangs, x100, ${nameOf(MIDDLE)}`,
          scenarios: [
            scenarioOf(MIDDLE, 100, size, { policy: { ...MIDDLE, ...policy }, warmup: 0, faults: hangs(2_000 / MIDDLE.interval) }),
          ],
          judge: (results: Parameters<typeof pooled>[0]) => [atMost('overshoot max', percent(overshoot(pooled(results)).max), 5)],
        },
        ...(name === 'sliding'
          ? []
          : [
              {
                name: `${name}, 1 % of messages take 0.3 to 2 s, x2, ${nameOf(MIDDLE)}`,
                scenarios: [scenarioOf(MIDDLE, 2, size, { network: { reordering: 0.01, stray: uniformBetween(300, 2_000) } })],
                judge: (results: Parameters<typeof pooled>[0]) => [atMost('false rejects', percent(pooled(results).falseRequests), 0.03)],
              },
            ]),
        {
          name: `${name}, round trips of 100 to 250 ms, x0.9, ${nameOf(MIDDLE)}`,
          scenarios: [scenarioOf(MIDDLE, 0.9, size, { policy: { ...MIDDLE, ...policy }, network: { latency: uniformBetween(50, 125) } })],
          judge: (results: Parameters<typeof pooled>[0]) => [atMost('false rejects', percent(pooled(results).falseRequests), 0)],
        },
      ]),
  },
  {
    id: 'N3',
    title: 'A day as interval, each node killed every hour',
    cases: () =>
      WINDOWS.map(({ name, policy, overshoot }) => ({
        name: `${name}, 3 nodes, x2, 1000 per day`,
        scenarios: [
          {
            policy: { limit: 1_000, interval: DAY, ...policy },
            nodes: 3,
            warmup: 0,
            intervals: 2,
            load: poisson(2),
            faults: kills,
            // With a heartbeat each second most of the simulation would be heartbeats.
            throttler: { heartbeat: 10_000 },
          },
        ],
        judge: (results) => [atMost('overshoot max', percent(overshoot(pooled(results)).max), 20)],
      })),
  },
  {
    id: 'N8',
    title: 'All traffic at one node, which changes twice per interval',
    cases: (size) => [
      {
        name: `x1.1, ${nameOf(MIDDLE)}`,
        scenarios: [scenarioOf(MIDDLE, 1.1, size, { balancing: moving(0.5) })],
        judge: (results) => [atMost('overshoot max', percent(pooled(results).overshoot.max), 1)],
      },
    ],
  },
]

/** The store hangs once in three intervals, from scattered moments. */
function hangs(length: number): FaultPlan {
  return {
    name: `store hangs for ${length} intervals, from scattered moments`,
    plan: ({ intervals }) => {
      const list: Fault[] = []
      for (let cycle = 1; 3 * cycle < intervals; cycle++) {
        const from = 3 * cycle - 1 + ((cycle * 0.6180339887498949) % 1)
        list.push({ kind: 'outage', from, until: from + length, mode: 'hang' })
      }
      return list
    },
  }
}

const kills: FaultPlan = {
  name: 'each node killed once in every hour of a day',
  plan: ({ random, intervals, nodes }) =>
    Array.from({ length: intervals * 24 * nodes }, (_, place) => ({
      kind: 'crash',
      at: (place + random.next()) / (24 * nodes),
      node: place % nodes,
    })),
}
