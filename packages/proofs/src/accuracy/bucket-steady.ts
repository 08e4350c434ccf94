import { tokenBucket } from '@weir/core'
import { bursts, poisson, type Scenario, sticky, together, uniform, zipf } from '@weir/testing'
import { atLeast, atMost, type Figure, type Goal, type GoalCase, percent, pooled, type Size, sum } from './goal.ts'
import { forEachSetting, LARGE, MIDDLE, nameOf, type Setting, SMALL, SPREADS, scenarioOf, spreadOf, type Triple } from './settings.ts'

/** A token bucket of a setting, under a steady load. `burst` is its size in units, by default the limit. */
export function bucketOf(setting: Setting, times: number, size: Size, more: Partial<Scenario> = {}, burst?: number): Scenario {
  const algorithm = tokenBucket(burst === undefined ? {} : { burst })
  return { ...scenarioOf(setting, times, size, more), policy: { ...setting, algorithm, ...more.policy } }
}

/** Figures of the debt, in per cent of the limit. */
export function debt(results: Parameters<GoalCase['judge']>[0], p95: number, max?: number): Figure[] {
  const { debt } = pooled(results)
  return [atMost('debt p95', percent(debt.p95), p95), ...(max === undefined ? [] : [atMost('debt max', percent(debt.max), max)])]
}

/** Store operations per interval: key writes of the key, and announcements, each of which is one operation for the store. */
export function operations(results: Parameters<GoalCase['judge']>[0]): number {
  const entries = sum(results, ({ store }) => store.entries)
  return pooled(results).operations * (1 + sum(results, ({ store }) => store.announcements) / entries)
}

/** Requests that are rejected although the exact bucket allows them. `share` is the part of all requests that may be. */
export function rejectedWrongly(results: Parameters<GoalCase['judge']>[0], share = 0): Figure {
  const requests = sum(results, (result) => result.requests)
  const wrong = sum(results, (result) => Math.round(result.falseRequests * result.requests))
  return atMost(`rejected wrongly, of ${requests}`, wrong, Math.floor(share * requests), 'requests')
}

/**
 * The part of all requests that may be rejected wrongly in a bucket of ten units. At 80 or 90 % of the limit chance fills it to the
 * brim, so that the exact bucket itself rejects 0.3 to 2 %. Processes track its level within the units that drain in a thousandth
 * of the interval, here a tenth of a unit. A request so near the edge may be allowed although the exact bucket rejects it. A later
 * request is then rejected in its place, and counts as rejected wrongly.
 */
const FILLED_BY_CHANCE = 0.005

/**
 * Figures for loads at which the exact bucket rejects some requests, too. As many must be allowed as by the exact bucket, and
 * nearly all of them must be the same.
 */
function rejectedAsOften(results: Parameters<GoalCase['judge']>[0], share: number): Figure[] {
  return [
    rejectedWrongly(results, share),
    atLeast('allowed, of what the exact bucket allows', percent(pooled(results).allowedOfExact), 99.9),
    rejectedWithRoom(results),
  ]
}

function rejectedWithRoom(results: Parameters<GoalCase['judge']>[0]): Figure {
  const rejected = sum(results, (result) => result.rejectedWithRoom)
  return atMost('rejected with room', rejected, 0, 'requests')
}

/** Intervals after which a bucket at x1.1 is full. From then on there are more operations. */
const FILLING = 10

/** Steady loads on buckets. Debt is the most units that were allowed beyond the burst, in per cent of the limit. */
export const bucketSteadyGoals: readonly Goal[] = [
  {
    id: 'B2',
    title: 'Bucket: one node, or sticky',
    cases: (size) =>
      forEachSetting((setting) =>
        [
          { name: 'one node', fields: { nodes: 1 } },
          { name: 'sticky', fields: { balancing: sticky } },
        ].map(({ name, fields }) => ({
          name: `${name}, ${nameOf(setting)}`,
          scenarios: [0.9, 1.1, 2, 100].map((times) => bucketOf(setting, times, size, fields)),
          judge: (results) => [atMost('debt max', pooled(results).debt.max * setting.limit, 1e-6, 'units')],
        })),
      ),
  },
  {
    id: 'B3',
    title: 'Bucket: the store never knows more than was allowed, and nobody is rejected while there is room',
    cases: (size) =>
      SPREADS.map((spread) => ({
        name: spread.name,
        scenarios: [SMALL, MIDDLE].flatMap((setting) =>
          [0.9, 1.1, 2, 100].map((times) => bucketOf(setting, times, size, spreadOf(spread))),
        ),
        judge: (results) => [
          atMost('told too much', Math.max(...results.map((result) => result.toldTooMuch)), 1e-6, 'units'),
          rejectedWithRoom(results),
        ],
      })),
  },
  {
    id: 'B4',
    title: 'Bucket: nobody is rejected below the limit',
    cases: (size) => [
      ...[SMALL, MIDDLE].flatMap((setting) =>
        (size.quick ? [12] : [3, 12, 50]).flatMap((nodes) => [
          ...[0.8, 0.9].map((times) => ({
            name: `x${times}, ${nodes} nodes, all balancings, ${nameOf(setting)}`,
            scenarios: SPREADS.map((spread) => bucketOf(setting, times, halved(size), { nodes, ...spreadOf(spread) })),
            judge: (results: Parameters<GoalCase['judge']>[0]) => [rejectedWrongly(results)],
          })),
          {
            name: `batches of 2 % at x0.8, ${nodes} nodes, all balancings, ${nameOf(setting)}`,
            scenarios: SPREADS.map((spread) => {
              const load = bursts({ size: 0.02 * setting.limit, every: 0.02 / 0.8, phase: 0.003 })
              return bucketOf(setting, 0.8, halved(size), { nodes, load, ...spreadOf(spread) })
            }),
            judge: (results: Parameters<GoalCase['judge']>[0]) => [rejectedWrongly(results)],
          },
        ]),
      ),
      ...[SMALL, MIDDLE].flatMap((setting) =>
        (size.quick ? [12] : [3, 12, 50]).map((nodes) => ({
          name: `x0.8 and x0.9, ${nodes} nodes, a burst of a tenth, ${nameOf(setting)}`,
          scenarios: [0.8, 0.9].map((times) => bucketOf(setting, times, halved(size), { nodes }, setting.limit / 10)),
          judge: (results: Parameters<GoalCase['judge']>[0]) =>
            setting === SMALL ? rejectedAsOften(results, FILLED_BY_CHANCE) : [rejectedWrongly(results)],
        })),
      ),
    ],
  },
  {
    id: 'B5',
    title: 'Bucket: bursts that fit',
    cases: (size) =>
      [SMALL, MIDDLE].flatMap((setting) =>
        [
          {
            name: '97 % of the bucket at once, from idle',
            load: bursts({ size: Math.floor(0.97 * setting.limit), every: 1.3, phase: 0.37 }),
          },
          {
            name: 'x0.8 and 80 % of the bucket at once',
            load: together(poisson(0.8), bursts({ size: Math.floor(0.8 * setting.limit), every: 5.2, phase: 0.37 })),
          },
          { name: 'x1', load: poisson(1) },
        ].map(({ name, load }) => ({
          name: `${name}, all balancings, ${nameOf(setting)}`,
          scenarios: SPREADS.map((spread) => bucketOf(setting, 1, halved(size), { load, ...spreadOf(spread) })),
          judge: (results) => [rejectedWrongly(results, setting === SMALL ? 0.01 : 0.0002)],
        })),
      ),
  },
  {
    id: 'B6',
    title: 'Bucket: over the limit, the debt; and what is allowed beside the exact bucket (B7)',
    cases: (size) =>
      forEachSetting((setting) =>
        [1.1, 2, 100].flatMap((times) =>
          [uniform, zipf()].map((balancing) => ({
            name: `x${times}, ${balancing.name}, ${nameOf(setting)}`,
            scenarios: [bucketOf(setting, times, size, { balancing })],
            judge: (results) => {
              const part = percent(pooled(results).allowedOfExact)
              const off = size.intervals < 80 ? 1 : 0.5
              return [...debt(results, 4, 5), atLeast('allowed', part, 100 - off), atMost('allowed', part, 100 + off)]
            },
          })),
        ),
      ),
  },
  {
    id: 'B8',
    title: 'Bucket: store operations',
    cases: (size) =>
      (
        [
          [0.1, [12, 20, 20]],
          [0.9, [40, 40, 40]],
          [1.1, [120, 260, 220], FILLING],
          [1.1, [120, 260, 260]],
          [2, [180, 310, 340]],
          [100, [200, 330, 380]],
        ] as const satisfies readonly [number, Triple, number?][]
      ).flatMap(([times, most, intervals]) =>
        forEachSetting((setting, index) => ({
          name: `x${times}, ${intervals === undefined ? '' : 'while it fills, '}${nameOf(setting)}`,
          scenarios: [bucketOf(setting, times, intervals === undefined ? size : { ...size, intervals })],
          judge: (results) => [atMost('operations', operations(results), most[index], 'ops')],
        })),
      ),
  },
  {
    id: 'B9',
    title: 'Bucket: 50 nodes',
    cases: (size) =>
      (
        [
          [1.1, 1.5, 1050],
          [2, 1.5, 1500],
          [100, 5, 1200],
        ] as const
      ).map(([times, p95, most]) => ({
        name: `x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [bucketOf(MIDDLE, times, size, { nodes: 50 })],
        judge: (results) => {
          const { allowed, intervals, operations: exchanges } = pooled(results)
          return [
            ...debt(results, p95),
            atMost('operations', operations(results), most, 'ops'),
            // At most one for each unit, and two of every process.
            atMost('exchanges, but for two of every node', exchanges - 2 * 50, allowed / intervals, 'ops'),
          ]
        },
      })),
  },
  {
    id: 'B13',
    title: 'Bucket: a burst of a tenth of the limit',
    cases: (size) =>
      [MIDDLE, LARGE].flatMap((setting) =>
        (
          [
            [0.9, 300],
            [1.1, 1700],
            [2, 1700],
            [100, 1800],
          ] as const
        ).map(([times, most]) => ({
          name: `x${times}, ${nameOf(setting)}`,
          scenarios: [bucketOf(setting, times, size, {}, setting.limit / 10)],
          judge: (results) => [
            ...debt(results, 2.5),
            atMost('operations', operations(results), most, 'ops'),
            ...(times < 1 ? [rejectedWrongly(results)] : []),
          ],
        })),
      ),
  },
  {
    id: 'B14',
    title: 'Bucket: a burst of one',
    cases: (size) =>
      (
        [
          [10, 1],
          [100, 4],
        ] as const
      ).flatMap(([limit, units]) =>
        [1.1, 2, 100].map((times) => ({
          name: `x${times}, ${limit} per 60 s`,
          scenarios: [bucketOf({ limit, interval: 60_000 } as Setting, times, size, {}, 1)],
          judge: (results) => {
            const { debt, allowed, intervals } = pooled(results)
            return [
              // The bound includes the units that drain in the time of a cell, because the store stores arrivals with that
              // precision.
              atMost('debt max', debt.max * limit, units + limit / 1000, 'units'),
              atMost('operations a unit', (operations(results) * intervals) / allowed, 2, 'ops'),
            ]
          },
        })),
      ),
  },
]

function halved(size: Size): Size {
  return { ...size, intervals: Math.ceil(size.intervals / 2) }
}
