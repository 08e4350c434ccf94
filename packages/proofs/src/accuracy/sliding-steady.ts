import { slidingWindow } from '@weir/core'
import { moving, poisson, roundRobin, type Scenario, sticky, uniform, zipf } from '@weir/testing'
import type { Size } from './goal.ts'
import { atLeast, atMost, type Figure, type Goal, percent, pooled, sum } from './goal.ts'
import {
  CRASHING,
  forEachSetting,
  MIDDLE,
  NODES,
  nameOf,
  type Setting,
  SMALL,
  SPREADS,
  scenarioOf,
  spreadOf,
  type Triple,
} from './settings.ts'

/** A sliding window of a setting, under a steady load. */
export function slidingOf(setting: Setting, times: number, size: Size, more: Partial<Scenario> = {}): Scenario {
  return { ...scenarioOf(setting, times, size, more), policy: { ...setting, algorithm: slidingWindow(), ...more.policy } }
}

/** Steady loads on sliding windows. */
export const slidingSteadyGoals: readonly Goal[] = [
  {
    id: 'S1',
    title: 'Sliding: nobody is rejected while there is room',
    cases: (size) =>
      [...SPREADS, CRASHING].map((spread) => ({
        name: spread.name,
        scenarios: [SMALL, MIDDLE].flatMap((setting) =>
          [0.9, 1.1, 2, 100].map((times) => slidingOf(setting, times, size, spreadOf(spread))),
        ),
        judge: (results) => [
          atMost(
            `rejected with room in ${sum(results, (result) => result.intervals)} intervals`,
            sum(results, (result) => result.rejectedWithRoom),
            0,
            'requests',
          ),
        ],
      })),
  },
  {
    id: 'S2',
    title: 'Sliding: hardly anybody is rejected below the limit',
    cases: (size) =>
      (
        [
          [0.8, [1, 0, 0]],
          [0.9, [2, 0.3, 0]],
        ] as const satisfies readonly [number, Triple][]
      ).flatMap(([times, most]) =>
        forEachSetting((setting, index) => ({
          name: `x${times}, all balancings, ${nameOf(setting)}`,
          scenarios: (size.quick ? [12] : [3, 12, 50]).flatMap((nodes) =>
            SPREADS.map((spread) =>
              slidingOf(setting, times, size, { nodes, intervals: Math.ceil(size.intervals / 2), ...spreadOf(spread) }),
            ),
          ),
          judge: (results) => [atMost('rejected under the limit', percent(pooled(results).rejectedUnderLimit), most[index])],
        })),
      ),
  },
  {
    id: 'S3',
    title: 'Sliding: one node, or sticky',
    cases: (size) =>
      forEachSetting((setting, index) =>
        [
          { name: 'one node', fields: { nodes: 1 } },
          { name: 'sticky', fields: { balancing: sticky } },
        ].map(({ name, fields }) => ({
          name: `${name}, ${nameOf(setting)}`,
          scenarios: [0.9, 1.1, 2, 100].map((times) => slidingOf(setting, times, size, fields)),
          judge: (results) => [atMost('worst window max', percent(pooled(results).worstWindow.max), ([2, 1, 0.2] as const)[index])],
        })),
      ),
  },
  ...overLimit('S4', 'Sliding: over the limit', [1.1, 2], [3, 1, 0.2]),
  ...overLimit('S5', 'Sliding: a hundred times the limit', [100], [4, 4, 0.7]),
  {
    id: 'S6',
    title: 'Sliding: 50 nodes',
    cases: (size) =>
      (
        [
          [2, 1.5],
          [100, 4.5],
        ] as const
      ).map(([times, p95]) => ({
        name: `x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [slidingOf(MIDDLE, times, size, { nodes: 50 })],
        judge: (results) => [atMost('worst window p95', percent(pooled(results).worstWindow.p95), p95)],
      })),
  },
  {
    id: 'S11',
    title: 'Sliding: allowed, beside an exact log',
    cases: (size) =>
      [1, NODES, 50].flatMap((nodes) =>
        (
          [
            [0.8, 99, undefined],
            [0.9, 99, undefined],
            [1.1, 90, undefined],
            [2, 92, undefined],
            [100, 100, 103],
          ] as const
        )
          // One process below the limit is no better than its spans: 97 to 98 % of a limit of 100.
          .filter(([times]) => nodes > 1 || times === 100)
          .flatMap(([times, least, most]) =>
            forEachSetting((setting) => ({
              name: `x${times}, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}, ${nameOf(setting)}`,
              scenarios: [slidingOf(setting, times, size, { nodes })],
              judge: (results) => {
                const part = percent(pooled(results).allowedOfExact)
                return [atLeast('allowed', part, least), ...(most === undefined ? [] : [atMost('allowed', part, most)])]
              },
            })),
          ),
      ),
  },
  {
    id: 'S12',
    title: 'Sliding: store operations',
    cases: (size) =>
      (
        [
          [0.1, [12, 42, 45]],
          [0.9, [95, 200, 180]],
          [1.1, [108, 240, 240]],
          [2, [108, 230, 220]],
          [100, [75, 95, 135]],
        ] as const satisfies readonly [number, Triple][]
      ).flatMap(([times, most]) =>
        forEachSetting((setting, index) => ({
          name: `x${times}, ${nameOf(setting)}`,
          scenarios: [slidingOf(setting, times, size)],
          judge: (results) => [atMost('operations', pooled(results).operations, most[index], 'ops')],
        })),
      ),
  },
  {
    id: 'S13',
    title: 'Sliding: a cooldown of an interval',
    cases: (size) =>
      forEachSetting((setting, index) =>
        [uniform, roundRobin, zipf(), moving()].map((balancing) => ({
          name: `${balancing.name}, x1.1 to x100, ${nameOf(setting)}`,
          scenarios: [1.1, 2, 100].map((times) =>
            slidingOf(setting, times, size, {
              policy: { ...setting, algorithm: slidingWindow(), cooldown: setting.interval },
              balancing,
              timeBlocks: true,
              intervals: Math.ceil(size.intervals / 2),
              load: poisson(times),
            }),
          ),
          judge: (results): Figure[] => [
            atMost('worst window p95', percent(pooled(results).worstWindow.p95), ([4, 4, 0.7] as const)[index]),
            atMost('false rejects', percent(pooled(results).falseRequests), 1),
            atMost('unblock spread max', Math.max(...results.map((result) => result.unblockSpread.max)), 1.1, 'ms'),
          ],
        })),
      ),
  },
]

function overLimit(id: string, title: string, loads: readonly number[], p95: Triple): readonly Goal[] {
  return [
    {
      id,
      title,
      cases: (size) =>
        forEachSetting((setting, index) =>
          loads.flatMap((times) =>
            [uniform, zipf()].map((balancing) => ({
              name: `x${times}, ${balancing.name}, ${nameOf(setting)}`,
              scenarios: [slidingOf(setting, times, size, { balancing })],
              judge: (results) => [atMost('worst window p95', percent(pooled(results).worstWindow.p95), p95[index])],
            })),
          ),
        ),
    },
  ]
}
