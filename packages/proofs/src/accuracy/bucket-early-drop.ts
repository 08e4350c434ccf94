import { tokenBucket } from '@weir/core'
import { bursts, poisson, type Scenario, together } from '@weir/testing'
import { bucketOf, debt, operations, rejectedWrongly } from './bucket-steady.ts'
import { atLeast, atMost, type Goal, percent, pooled, type Size } from './goal.ts'
import { MIDDLE, nameOf, type Setting, SMALL, SPREADS, spreadOf } from './settings.ts'

/** Makes a scenario like `bucketOf`, with `earlyDrop`. */
function dropping(setting: Setting, times: number, size: Size, more: Partial<Scenario> = {}): Scenario {
  // A request that was just rejected may be allowed by chance and is reported to the store. So every request must be decided.
  return bucketOf(setting, times, size, { ...more, shortcut: false, policy: { ...setting, algorithm: tokenBucket({ earlyDrop: true }) } })
}

/** Buckets that allow requests by chance while there are too many of them. */
export const bucketEarlyDropGoals: readonly Goal[] = [
  {
    id: 'B18',
    title: 'Bucket, early drop: over the limit, near and far',
    cases: (size) => [
      ...[1, 10, 50, 100, 250].flatMap((roundTrip) =>
        [2, 100].map((times) => ({
          name: `x${times}, a round trip of ${roundTrip} ms, ${nameOf(MIDDLE)}`,
          // The warm-up lasts until the first flood is paid back and the demand is measured.
          scenarios: [dropping(MIDDLE, times, size, { warmup: 8, network: { latency: roundTrip / 2 } })],
          judge: (results: Parameters<typeof debt>[0]) => {
            const { allowed, intervals } = pooled(results)
            const rate = percent(allowed / intervals / MIDDLE.limit)
            return [
              ...debt(results, 1),
              atLeast('rate', rate, 99.5),
              atMost('rate', rate, 100.5),
              atMost('operations', operations(results), 70, 'ops'),
            ]
          },
        })),
      ),
      ...[2, 100].map((times) => ({
        name: `x${times}, ${nameOf(SMALL)}`,
        scenarios: [dropping(SMALL, times, size, { warmup: 8 })],
        judge: (results: Parameters<typeof debt>[0]) => debt(results, 8),
      })),
      ...[2, 100].map((times) => ({
        name: `x${times}, 50 nodes, ${nameOf(MIDDLE)}`,
        scenarios: [dropping(MIDDLE, times, size, { warmup: 8, nodes: 50 })],
        judge: (results: Parameters<typeof debt>[0]) => [...debt(results, 1), atMost('operations', operations(results), 320, 'ops')],
      })),
    ],
  },
  {
    id: 'B19',
    title: 'Bucket, early drop: below the limit, and bursts that fit',
    cases: (size) => [
      ...[SMALL, MIDDLE].map((setting) => ({
        name: `x0.8 and x0.9, all balancings, ${nameOf(setting)}`,
        scenarios: [0.8, 0.9].flatMap((times) => SPREADS.map((spread) => dropping(setting, times, size, spreadOf(spread)))),
        judge: (results: Parameters<typeof debt>[0]) => [rejectedWrongly(results)],
      })),
      {
        name: `x0.8 and 80 % of the bucket at once, all balancings, ${nameOf(MIDDLE)}`,
        scenarios: SPREADS.map((spread) => {
          const load = together(poisson(0.8), bursts({ size: Math.floor(0.8 * MIDDLE.limit), every: 5.2, phase: 0.37 }))
          return dropping(MIDDLE, 1, size, { load, ...spreadOf(spread) })
        }),
        judge: (results) => [rejectedWrongly(results)],
      },
      {
        name: `97 % of the bucket at once, from idle, all balancings, ${nameOf(MIDDLE)}`,
        scenarios: SPREADS.map((spread) => {
          const load = bursts({ size: Math.floor(0.97 * MIDDLE.limit), every: 1.3, phase: 0.37 })
          return dropping(MIDDLE, 1, size, { load, ...spreadOf(spread) })
        }),
        judge: (results) => [rejectedWrongly(results, 0.02)],
      },
    ],
  },
]
