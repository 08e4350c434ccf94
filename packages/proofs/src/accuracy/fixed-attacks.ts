import { crashes, doubling, manyKeys, moving, poisson, summarize, together, uniform, zipf } from '@weir/testing'
import { attacks, type Phase, worstOfAttacks } from './attacks.ts'
import { atMost, type Goal, type GoalCase, percent, pooled, sum } from './goal.ts'
import { forEachSetting, LARGE, MIDDLE, NODES, nameOf, SETTINGS, SMALL, scenarioOf, type Triple } from './settings.ts'

const PHASES: readonly Phase[] = ['random phase', 'boundary', 'straddling']

/** Floods, and processes that start and end during them. */
export const attackGoals: readonly Goal[] = [
  cold('7', 'A flood on an idle key', 'uniform', [5, 3.5, 0.6]),
  cold('8', 'A flood on an idle key, nodes unevenly loaded', 'zipf', [8, 6, 4]),
  {
    id: '9',
    title: 'From the first request beyond the limit to the block',
    cases: (size) => [
      {
        name: nameOf(MIDDLE),
        scenarios: [scenarioOf(MIDDLE, 100, size, { timeBlocks: true })],
        judge: (results) => [
          atMost('mean', pooled(results).block.mean, 3, 'ms'),
          atMost('slowest node p95', pooled(results).slowestBlock.p95, 4, 'ms'),
        ],
      },
    ],
  },
  {
    id: '10',
    title: 'Nodes doubled during a flood',
    cases: (size) =>
      forEachSetting((setting, index) => ({
        name: nameOf(setting),
        scenarios: [scenarioOf(setting, 100, size, { faults: doubling(2) })],
        judge: (results) => [atMost('overshoot max', percent(pooled(results).overshoot.max), ([12, 6, 6] as const)[index])],
      })),
  },
  {
    id: '11',
    title: 'A crash in every interval',
    cases: (size) =>
      (
        [
          [1.1, 2],
          [100, 4],
        ] as const
      ).map(([times, p95]) => ({
        name: `x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [scenarioOf(MIDDLE, times, size, { faults: crashes })],
        judge: (results) => [atMost('overshoot p95', percent(pooled(results).overshoot.p95), p95)],
      })),
  },
  {
    id: '12',
    title: 'All traffic at one node, which changes',
    cases: (size) =>
      (
        [
          [1.1, 0.5],
          [100, 3],
        ] as const
      ).map(([times, most]) => ({
        name: `x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [scenarioOf(MIDDLE, times, size, { balancing: moving() })],
        judge: (results) => [atMost('overshoot max', percent(pooled(results).overshoot.max), most)],
      })),
  },
  {
    id: '13',
    title: 'A round trip of 10 ms',
    cases: (size) =>
      (
        [
          [MIDDLE, 18],
          [LARGE, 3],
        ] as const
      ).map(([setting, mean]) => {
        // The bound is K/MAX + x·(RTT + spacing + announcement)/INTERVAL, for stationary traffic.
        const bound = NODES / setting.limit + (100 * (10 + 2 + 5)) / setting.interval
        return {
          name: `x100, ${nameOf(setting)}`,
          scenarios: [scenarioOf(setting, 100, size, { network: { latency: 5 } })],
          judge: (results) => [
            atMost('overshoot mean', percent(pooled(results).overshoot.mean), mean),
            atMost('overshoot max (bound)', percent(pooled(results).overshoot.max), percent(bound)),
          ],
        }
      }),
  },
  {
    id: '22',
    title: 'A million cold keys cost nothing, and hide no hot one',
    cases: (size) =>
      (
        [
          [SMALL, 12],
          [MIDDLE, 6],
        ] as const
      ).flatMap(([setting, most]): GoalCase[] => {
        const keys = size.quick ? 50_000 : 1_000_000
        // Each cold key comes once or twice: three requests for every two keys.
        const perInterval = keys * 1.5
        const load = together(manyKeys(keys, perInterval), poisson(100, { key: 'hot' }))
        const intervals = size.quick ? 3 : 6
        const scenario = scenarioOf(setting, 0, size, { load, intervals, warmup: 1, watch: ['hot'] })
        return [
          {
            name: nameOf(setting),
            scenarios: [scenario],
            judge: (results) => {
              const cold = results.length * (intervals + 1) * perInterval
              const writes = sum(results, (result) => result.store.entries) - sum(results, (result) => result.operations * result.intervals)
              return [atMost('key-writes per cold request', percent(writes / cold), 1)]
            },
          },
          {
            // Closing processes send all their counts, so key writes are measured only where no process closes.
            name: `nodes doubled, ${nameOf(setting)}`,
            scenarios: [{ ...scenario, faults: doubling(2) }],
            judge: (results) => [atMost('overshoot max of the hot key', percent(pooled(results).overshoot.max), most)],
          },
        ]
      }),
  },
]

function cold(id: string, title: string, balancing: 'uniform' | 'zipf', p95: Triple): Goal {
  return {
    id,
    title,
    cases: (size) =>
      SETTINGS.flatMap((setting, index) =>
        PHASES.map((phase) => ({
          name: `${phase}, ${nameOf(setting)}`,
          scenarios: [
            scenarioOf(setting, 100, size, {
              balancing: balancing === 'zipf' ? zipf() : uniform,
              ...attacks(size.intervals, phase, 100),
            }),
          ],
          judge: (results) => {
            const worst = worstOfAttacks(results, ({ allowed }) => Math.max(0, allowed - setting.limit) / setting.limit)
            return [atMost('overshoot p95', percent(summarize(worst).p95), p95[index] as number)]
          },
        })),
      ),
  }
}
