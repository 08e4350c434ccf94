import { roundRobin, sticky, uniform, zipf } from '@weir/testing'
import { atMost, type Goal, percent, pooled, sum } from './goal.ts'
import { forEachSetting, MIDDLE, nameOf, type Setting, SMALL, SPREADS, scenarioOf, spreadOf, type Triple } from './settings.ts'

/** Steady loads on fixed windows. */
export const steadyGoals: readonly Goal[] = [
  {
    id: '1',
    title: 'One node, or sticky: exact',
    cases: (size) =>
      forEachSetting((setting) =>
        [
          { name: 'one node', fields: { nodes: 1, balancing: uniform } },
          { name: 'sticky', fields: { balancing: sticky } },
        ].map(({ name, fields }) => ({
          name: `${name}, ${nameOf(setting)}`,
          scenarios: [0.5, 0.9, 1.1, 2, 100].map((times) => scenarioOf(setting, times, size, fields)),
          judge: (results) => [
            atMost('overshoot max', percent(pooled(results).overshoot.max), 0),
            atMost('false rejects', pooled(results).falseRequests * pooled(results).requests, 0, 'requests'),
          ],
        })),
      ),
  },
  {
    id: '2',
    title: 'Below the limit nobody is rejected wrongly',
    cases: (size) =>
      SPREADS.map((spread) => ({
        name: spread.name,
        scenarios: (size.quick ? [12] : [3, 12, 50]).flatMap((nodes) =>
          [SMALL, MIDDLE].flatMap((setting) =>
            [0.8, 0.9].map((times) =>
              // Seven spreads, three clusters, two limits and two loads: 84 scenarios make 30,000 intervals.
              scenarioOf(setting, times, size, { nodes, intervals: Math.ceil(size.intervals * 4.5), ...spreadOf(spread) }),
            ),
          ),
        ),
        judge: (results) => [
          atMost(
            `false rejects in ${sum(results, (result) => result.intervals)} intervals`,
            sum(results, (result) => Math.round(result.falseRequests * result.requests)),
            0,
            'requests',
          ),
        ],
      })),
  },
  ...overLimit('3', 'A little over the limit', 1.1, [2, 0.5, 0.1], [80, 175, 260], ['uniform', 'zipf']),
  ...overLimit('4', 'Twice the limit', 2, [2, 0.5, 0.1], [75, 140, 200], ['uniform']),
  ...overLimit('5', 'A hundred times the limit', 100, [4, 3, 0.6], [65, 115, 175], ['uniform']),
  {
    id: '6',
    title: 'A hundred times the limit, 50 nodes',
    cases: (size) => [
      {
        name: nameOf(MIDDLE),
        scenarios: [scenarioOf(MIDDLE, 100, size, { nodes: 50 })],
        judge: (results) => [
          atMost('overshoot p95', percent(pooled(results).overshoot.p95), 3.5),
          atMost('operations', pooled(results).operations, 340, 'ops'),
        ],
      },
    ],
  },
  {
    id: '18',
    title: 'A tenth of the limit costs little',
    cases: (size) =>
      forEachSetting((setting, index) =>
        [uniform, roundRobin, zipf()].map((balancing) => ({
          name: `${balancing.name}, ${nameOf(setting)}`,
          scenarios: [scenarioOf(setting, 0.1, size, { balancing })],
          judge: (results) => [atMost('operations', pooled(results).operations, ([12, 48, 50] as const)[index], 'ops')],
        })),
      ),
  },
]

function overLimit(
  id: string,
  title: string,
  times: number,
  p95: Triple,
  operations: Triple,
  balancings: readonly ('uniform' | 'zipf')[],
): readonly Goal[] {
  return [
    {
      id,
      title,
      cases: (size) =>
        forEachSetting((setting: Setting, index) =>
          balancings.map((balancing) => ({
            name: `x${times}, ${balancing}, ${nameOf(setting)}`,
            scenarios: [scenarioOf(setting, times, size, { balancing: balancing === 'zipf' ? zipf() : uniform })],
            judge: (results) => [
              atMost('overshoot p95', percent(pooled(results).overshoot.p95), p95[index]),
              atMost('operations', pooled(results).operations, operations[index], 'ops'),
            ],
          })),
        ),
    },
  ]
}
