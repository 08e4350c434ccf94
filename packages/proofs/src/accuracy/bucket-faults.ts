import { crashes, doubling, moving, poisson, type Scenario, squareWave, uniform, zipf } from '@weir/testing'
import { attacks } from './attacks.ts'
import { bucketOf, debt } from './bucket-steady.ts'
import { isAfterOutage, scatteredOutages } from './fixed-faults.ts'
import { atLeast, atMost, type Goal, percent, pooled } from './goal.ts'
import { forEachSetting, MIDDLE, nameOf, SMALL, type Triple } from './settings.ts'

/** Floods on buckets, and faults. */
export const bucketFaultGoals: readonly Goal[] = [
  {
    id: 'B10',
    title: 'Bucket: a flood on an idle key',
    cases: (size) =>
      (
        [
          [uniform, [12, 5, 4]],
          [zipf(), [12, 8, 6]],
        ] as const
      ).flatMap(([balancing, max]) =>
        forEachSetting((setting, index) => ({
          name: `x100, ${balancing.name}, ${nameOf(setting)}`,
          scenarios: [bucketOf(setting, 100, size, { balancing, ...attacks(Math.ceil(size.intervals / 4), 'random phase', 100) })],
          judge: (results) => [atMost('debt max', percent(pooled(results).debt.max), (max as Triple)[index])],
        })),
      ),
  },
  {
    id: 'B11',
    title: 'Bucket: surges',
    cases: (size) =>
      [
        { name: 'idle to x100', load: squareWave({ low: 0, high: 100, period: 6.1, duty: 0.3 }), balancing: uniform },
        { name: 'x0.9 to x2', load: squareWave({ low: 0.9, high: 2, period: 6.1, duty: 0.5 }), balancing: uniform },
        { name: 'x0.9 to x100', load: squareWave({ low: 0.9, high: 100, period: 6.1, duty: 0.3 }), balancing: uniform },
        { name: 'x0.5 to x10, zipf', load: squareWave({ low: 0.5, high: 10, period: 6.1, duty: 0.3 }), balancing: zipf() },
      ].flatMap(({ name, load, balancing }) =>
        forEachSetting((setting, index) => ({
          name: `${name}, ${nameOf(setting)}`,
          scenarios: [bucketOf(setting, 1, size, { load, balancing })],
          judge: (results) => debt(results, ([5, 6, 6] as const)[index], 7),
        })),
      ),
  },
  {
    id: 'B12',
    title: 'Bucket: far from the store, x100; the rate over all intervals',
    cases: (size) => [
      ...(
        [
          [10, 12],
          [50, 100],
          [100, 130],
          [250, 260],
        ] as const
      ).map(([roundTrip, p95]) => ({
        name: `a round trip of ${roundTrip} ms, ${nameOf(MIDDLE)}`,
        scenarios: [bucketOf(MIDDLE, 100, size, { network: { latency: roundTrip / 2 }, intervals: Math.ceil(1.25 * size.intervals) })],
        judge: (results: Parameters<typeof debt>[0]) => {
          const { allowed, intervals } = pooled(results)
          return [...debt(results, p95), atMost('rate', percent(allowed / intervals / MIDDLE.limit), 101)]
        },
      })),
      // Distant processes learn of the flood late, but they allow only a part of all units.
      ...[50, 100].map((roundTrip) => ({
        name: `three of twelve nodes ${roundTrip} ms away, ${nameOf(MIDDLE)}`,
        scenarios: [bucketOf(MIDDLE, 100, size, { network: { far: { nodes: 3, latency: roundTrip / 2 } } })],
        judge: (results: Parameters<typeof debt>[0]) => {
          const { allowed, intervals } = pooled(results)
          return [...debt(results, 20), atMost('rate', percent(allowed / intervals / MIDDLE.limit), 101)]
        },
      })),
    ],
  },
  {
    id: 'B15',
    title: 'Bucket: nodes that come, go and crash',
    cases: (size) => [
      ...[2, 100].map((times) => ({
        name: `doubled, x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [bucketOf(MIDDLE, times, size, { faults: doubling(2) })],
        judge: (results: Parameters<typeof debt>[0]) => [atMost('debt max', percent(pooled(results).debt.max), 8)],
      })),
      ...(
        [
          [1.1, 45],
          [2, 15],
          [100, 6],
        ] as const
      ).map(([times, max]) => ({
        name: `a crash per interval, x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [bucketOf(MIDDLE, times, size, { faults: crashes })],
        judge: (results: Parameters<typeof debt>[0]) => [
          atMost('debt max', percent(pooled(results).debt.max), max),
          atMost('allowed', percent(pooled(results).allowedOfExact), 101.5),
        ],
      })),
    ],
  },
  {
    id: 'B16',
    title: 'Bucket: messages lost or doubled, clocks that are wrong',
    cases: (size) =>
      DISTURBED.flatMap(({ name, fields, flood = 5 }) =>
        [0.9, 1.1, 2, 100].map((times) => ({
          name: `${name}, x${times}, ${nameOf(MIDDLE)}`,
          scenarios: [bucketOf(MIDDLE, times, size, fields)],
          judge: (results) =>
            times < 1 ? [atMost('rejected wrongly', percent(pooled(results).falseRequests), 0)] : debt(results, times === 100 ? flood : 5),
        })),
      ),
  },
  {
    id: 'B17',
    title: 'Bucket: the store is away for two intervals, and after',
    cases: (size) => [
      ...[SMALL, MIDDLE].map((setting) => ({
        name: `x0.9, ${nameOf(setting)}`,
        scenarios: [bucketOf(setting, 0.9, size, { faults: scatteredOutages(2) })],
        judge: (results: Parameters<typeof debt>[0]) => [
          atMost('rejected wrongly', percent(pooled(results, ({ outage }) => outage).falseRequests), setting === SMALL ? 4 : 0.5),
        ],
      })),
      ...(
        [
          [2, 10],
          [100, 150],
        ] as const
      ).map(([times, max]) => ({
        name: `x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [bucketOf(MIDDLE, times, size, { faults: scatteredOutages(2), load: poisson(times) })],
        judge: (results: Parameters<typeof debt>[0]) => {
          const all = pooled(results)
          return [
            atMost('debt max', percent(all.debt.max), max),
            atMost('debt p95 after it, from the second interval on', percent(pooled(results, isLongAfter).debt.p95), 5),
            atLeast('allowed', percent(all.allowedOfExact), 99),
            atMost('allowed', percent(all.allowedOfExact), 101),
          ]
        },
      })),
    ],
  },
]

const DISTURBED: readonly { readonly name: string; readonly fields: Partial<Scenario>; readonly flood?: number }[] = [
  { name: 'moving traffic', fields: { balancing: moving() } },
  { name: 'no announcements', fields: { network: { announcementLoss: 1 } } },
  { name: 'half of the announcements', fields: { network: { announcementLoss: 0.5 } } },
  { name: 'a tenth of the replies lost', fields: { network: { replyLoss: 0.1 } }, flood: 14 },
  { name: 'a tenth of the exchanges lost', fields: { network: { loss: 0.05 } }, flood: 14 },
  { name: 'a fifth doubled', fields: { network: { duplication: 0.2 } } },
  {
    name: 'clocks ±50 ms, a store without a clock',
    fields: { storeClock: 'caller', clocks: (_place, random) => ({ offset: (random.next() - 0.5) * 100 }) },
  },
]

/** Whether an interval is not among the first two after an outage, in which overshoot is paid back. */
function isLongAfter(interval: Parameters<typeof isAfterOutage>[0]): boolean {
  return isAfterOutage(interval) && (interval.index - 5) % 8 >= 5
}
