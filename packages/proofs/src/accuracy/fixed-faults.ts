import { type Fault, type FaultPlan, type IntervalMeasure, moving, poisson, type Scenario, uniform, zipf } from '@weir/testing'
import { atMost, type Figure, type Goal, percent, pooled, sum } from './goal.ts'
import { forEachSetting, MIDDLE, nameOf, SPREADS, scenarioOf, spreadOf, type Triple } from './settings.ts'

/** Stores that are down, clocks that are wrong, announcements that don't arrive. */
export const faultGoals: readonly Goal[] = [
  {
    id: '14',
    title: 'The store is away',
    cases: (size) =>
      (['uniform', 'zipf'] as const).flatMap((balancing) =>
        (
          [
            [100, (figures) => atMost('overshoot max', percent(figures.overshoot.max), 5)],
            [2, (figures) => atMost('overshoot max', percent(figures.overshoot.max), 30)],
            [0.9, (figures) => atMost('false rejects', percent(figures.falseRequests), 1)],
          ] as const satisfies readonly [number, (figures: ReturnType<typeof pooled>) => Figure][]
        ).map(([times, judge]) => ({
          name: `x${times}, ${balancing}, ${nameOf(MIDDLE)}`,
          scenarios: outageScenarios(times, balancing, size.intervals),
          judge: (results) => [judge(pooled(results, ({ outage }) => outage))],
        })),
      ),
  },
  {
    id: '15',
    title: 'After the store was away',
    cases: (size) =>
      (
        [
          [1.1, 0.5],
          [2, 0.5],
          [100, 3],
          [0.9, 0],
        ] as const
      ).map(([times, p95]) => ({
        name: `x${times}, uniform, ${nameOf(MIDDLE)}`,
        scenarios: outageScenarios(times, 'uniform', size.intervals),
        judge: (results) => {
          const after = pooled(results, isAfterOutage)
          return [
            ...(times > 1 ? [atMost('overshoot p95', percent(after.overshoot.p95), p95)] : []),
            atMost('false rejects', Math.round(after.falseRequests * after.requests), 0, 'requests'),
          ]
        },
      })),
  },
  {
    id: '16',
    title: 'After a cooldown all nodes open together',
    cases: (size) =>
      [0.5, 1, 2.5].flatMap((cooldown) =>
        SPREADS.map((spread) => ({
          name: `cooldown of ${cooldown} intervals, ${spread.name}, x1.1 to x100, ${nameOf(MIDDLE)}`,
          scenarios: [1.1, 2, 100].map((times) =>
            scenarioOf(MIDDLE, times, size, {
              policy: { ...MIDDLE, cooldown: MIDDLE.interval * cooldown },
              timeBlocks: true,
              intervals: Math.ceil(size.intervals / 3),
              ...spreadOf(spread),
            }),
          ),
          // The bound is a round trip of 1 ms, and 0.1 ms for the grid of the peeks.
          judge: (results) => [atMost('spread max', Math.max(...results.map((result) => result.unblockSpread.max)), 1.1, 'ms')],
        })),
      ),
  },
  {
    id: '17',
    title: 'Clocks that are wrong',
    cases: (size) => [
      ...(
        [
          [1.1, [2, 0.5, 0.1], [80, 175, 260]],
          [2, [2, 0.5, 0.1], [75, 140, 200]],
          [100, [4, 3, 0.6], [65, 115, 175]],
        ] as const satisfies readonly [number, Triple, Triple][]
      ).flatMap(([times, p95, operations]) =>
        forEachSetting((setting, index) => ({
          name: `±2 s, x${times}, ${nameOf(setting)}`,
          scenarios: [scenarioOf(setting, times, size, { clocks: (_place, random) => ({ offset: (random.next() - 0.5) * 4000 }) })],
          judge: (results) => [
            atMost('overshoot p95', percent(pooled(results).overshoot.p95), p95[index]),
            atMost('operations', pooled(results).operations, operations[index], 'ops'),
          ],
        })),
      ),
      {
        name: `±50 ms, a store without a clock, x1.1, ${nameOf(MIDDLE)}`,
        scenarios: [
          scenarioOf(MIDDLE, 1.1, size, {
            storeClock: 'caller',
            clocks: (_place, random) => ({ offset: (random.next() - 0.5) * 100 }),
          }),
        ],
        judge: (results) => [atMost('false rejects', percent(pooled(results).falseRequests), 0.3)],
      },
    ],
  },
  {
    id: '19',
    title: 'No announcement ever arrives',
    cases: (size) =>
      forEachSetting((setting, index) => [
        {
          name: `x1.1, ${nameOf(setting)}`,
          scenarios: [scenarioOf(setting, 1.1, size, { network: { announcementLoss: 1 } })],
          judge: (results) => [atMost('overshoot p95', percent(pooled(results).overshoot.p95), ([12, 1.6, 0.2] as const)[index])],
        },
        {
          name: `x100, ${nameOf(setting)}`,
          scenarios: [scenarioOf(setting, 100, size, { network: { announcementLoss: 1 } })],
          judge: (results) => [atMost('overshoot mean', percent(pooled(results).overshoot.mean), ([15, 4, 0.6] as const)[index])],
        },
      ]),
  },
  {
    id: '21',
    title: "The last span's counts land in their interval",
    cases: (size) =>
      forEachSetting((setting) => ({
        name: `requests in every other interval's last span only, ${nameOf(setting)}`,
        scenarios: [uniform, zipf(), moving()].map((balancing) =>
          scenarioOf(setting, 0, size, { nodes: 3, balancing, load: lastSpanOfEveryOther() }),
        ),
        judge: (results) => [
          atMost(
            'units that the store has of another interval',
            sum(results, ({ measured }) =>
              measured.reduce((total, { stored, allowed }) => total + Math.max(0, (stored ?? 0) - allowed), 0),
            ),
            0,
            'units',
          ),
          atMost(
            'missing from their own',
            percent(
              sum(results, ({ measured }) =>
                measured.reduce((total, { stored, allowed }) => total + Math.max(0, allowed - (stored ?? 0)), 0),
              ) / sum(results, (result) => result.allowed),
            ),
            // Counts of keys far below the limit are not sent: a tenth of a process's share of the limit, relative to nine tenths
            // allowed.
            100 / 9,
          ),
        ],
      })),
  },
]

/** Whole, undisturbed intervals between two outages, and before the first. */
const PAUSE = 5

/** The store is down for 1, 2 and 3 intervals, repeatedly, from moments scattered over an interval. */
function outageScenarios(times: number, balancing: 'uniform' | 'zipf', intervals: number): readonly Scenario[] {
  return [1, 2, 3].map((length) => ({
    ...scenarioOf(MIDDLE, times, { intervals, quick: false }),
    balancing: balancing === 'zipf' ? zipf() : uniform,
    faults: scatteredOutages(length),
  }))
}

export function scatteredOutages(length: number): FaultPlan {
  return {
    name: `store away for ${length} intervals, from scattered moments`,
    plan: ({ intervals }) => {
      const list: Fault[] = []
      const period = Math.ceil(length) + 1 + PAUSE
      for (let cycle = 0; PAUSE + (cycle + 1) * period <= intervals; cycle++) {
        const from = PAUSE + cycle * period + ((cycle * 0.6180339887498949) % 1)
        list.push({ kind: 'outage', from, until: from + length })
      }
      return list
    },
  }
}

/** Whether an interval is a full one after the first outage. */
export function isAfterOutage({ outage, index }: IntervalMeasure): boolean {
  return !outage && index > PAUSE
}

/** A load of nine tenths of the limit in the last of six spans of every other interval. */
function lastSpanOfEveryOther() {
  const last = 5 / 6
  return {
    ...poisson((position) => {
      const begin = Math.floor(position / 2) * 2
      if (position < begin + last) return { times: 0, until: begin + last }
      return position < begin + 1 ? { times: 0.9 * 6, until: begin + 1 } : { times: 0, until: begin + 2 }
    }),
    name: 'x5.4 in the last span of every other interval',
  }
}
