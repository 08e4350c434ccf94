import { bursts, crashes, doubling, type Load, type SimulationResult, squareWave, summarize, uniform, zipf } from '@weir/testing'
import { attacks, type Phase, worstOfAttacks } from './attacks.ts'
import { isAfterOutage, scatteredOutages } from './fixed-faults.ts'
import { atMost, type Goal, percent, pooled } from './goal.ts'
import { forEachSetting, MIDDLE, nameOf, type Setting } from './settings.ts'
import { slidingOf } from './sliding-steady.ts'

const PHASES: readonly Phase[] = ['random phase', 'boundary', 'straddling', 'bucket edge']

/** Floods on sliding windows, tuned to their edges, and faults. */
export const slidingAttackGoals: readonly Goal[] = [
  {
    id: 'S7',
    title: 'Sliding: a flood on an idle key',
    cases: (size) =>
      forEachSetting((setting, index) =>
        [10, 100].flatMap((times) =>
          [uniform, zipf()].flatMap((balancing) =>
            PHASES.map((phase) => ({
              name: `x${times}, ${phase}, ${balancing.name}, ${nameOf(setting)}`,
              scenarios: [slidingOf(setting, times, size, { balancing, ...attacks(size.intervals, phase, times) })],
              judge: (results) => {
                const worst = worstOfAttacks(results, ({ worstWindow }) => Math.max(0, worstWindow - setting.limit) / setting.limit)
                return [
                  atMost('worst window p95', percent(summarize(worst).p95), ([4, 4, 0.7] as const)[index]),
                  atMost('worst window max', percent(summarize(worst).max), ([12, 6, 1] as const)[index]),
                ]
              },
            })),
          ),
        ),
      ),
  },
  {
    id: 'S8',
    title: 'Sliding: attacks tuned to the window',
    cases: (size) =>
      forEachSetting((setting, index) =>
        tuned(setting).map((load) => ({
          name: `${load.name}, ${nameOf(setting)}`,
          scenarios: [slidingOf(setting, 0, size, { load })],
          judge: (results) => [
            atMost('worst window p95', percent(pooled(results).worstWindow.p95), ([5, 5, 1] as const)[index]),
            atMost('worst window max', percent(pooled(results).worstWindow.max), ([5, 5, 4] as const)[index]),
          ],
        })),
      ),
  },
  {
    id: 'S9',
    title: 'Sliding: nodes that come and go',
    cases: (size) => [
      ...forEachSetting((setting, index) => ({
        name: `doubled at x100, ${nameOf(setting)}`,
        scenarios: [slidingOf(setting, 100, size, { faults: doubling(2) })],
        judge: (results) => [atMost('worst window max', percent(pooled(results).worstWindow.max), ([5, 6, 1] as const)[index])],
      })),
      ...(
        [
          [1.1, 2],
          [100, 4],
        ] as const
      ).map(([times, p95]) => ({
        name: `a crash per interval, x${times}, ${nameOf(MIDDLE)}`,
        scenarios: [slidingOf(MIDDLE, times, size, { faults: crashes })],
        judge: (results: Parameters<typeof pooled>[0]) => [atMost('worst window p95', percent(pooled(results).worstWindow.p95), p95)],
      })),
    ],
  },
  {
    id: 'S10',
    title: 'Sliding: a round trip of 10 ms',
    cases: (size) =>
      forEachSetting((setting, index) => ({
        name: `x100, ${nameOf(setting)}`,
        scenarios: [slidingOf(setting, 100, size, { network: { latency: 5 } })],
        judge: (results) => [atMost('worst window mean', percent(pooled(results).worstWindow.mean), ([5, 19, 3.5] as const)[index])],
      })),
  },
  {
    id: 'S14',
    title: 'Sliding: the store is away',
    cases: (size) => [
      ...([100, 2, 0.9] as const).map((times) => ({
        name: `x${times}, ${nameOf(MIDDLE)}`,
        scenarios: outageScenarios(times, size.intervals),
        judge: (results: Parameters<typeof pooled>[0]) => {
          const during = pooled(results, ({ outage }) => outage)
          return times < 1
            ? [atMost('rejected under the limit', percent(during.rejectedUnderLimit), 1.5)]
            : [atMost('worst window max', percent(during.worstWindow.max), times === 100 ? 8 : 18)]
        },
      })),
      ...(
        [
          [1.1, 1],
          [2, 1],
          [100, 4],
        ] as const
      ).map(([times, p95]) => ({
        name: `afterwards, x${times}, ${nameOf(MIDDLE)}`,
        scenarios: outageScenarios(times, size.intervals),
        judge: (results: Parameters<typeof pooled>[0]) => [
          atMost('worst window p95', percent(pooled(results.map(withoutEchoes), isAfterOutage).worstWindow.p95), p95),
        ],
      })),
    ],
  },
  {
    id: 'S15',
    title: 'Sliding: no announcement ever arrives',
    cases: (size) =>
      forEachSetting((setting, index) => ({
        name: `x1.1, ${nameOf(setting)}`,
        scenarios: [slidingOf(setting, 1.1, size, { network: { announcementLoss: 1 } })],
        judge: (results) => [atMost('worst window p95', percent(pooled(results).worstWindow.p95), ([9, 2, 0.3] as const)[index])],
      })),
  },
]

/** Waves that return exactly after a window's length, and volleys at the ends of spans. */
function tuned({ limit }: Setting): readonly Load[] {
  const bucket = 1 / 30
  return [
    squareWave({ high: 100, low: 0, period: 1, duty: bucket }),
    squareWave({ high: 100, low: 0, period: 1 + bucket, duty: bucket }),
    squareWave({ high: 30, low: 0, period: 1 - bucket, duty: 2 * bucket, phase: bucket / 2 }),
    squareWave({ high: 10, low: 0.5, period: 2, duty: 0.5 }),
    bursts({ size: limit, every: 1, phase: bucket * 0.99, width: 5 }),
    bursts({ size: limit, every: 1 + bucket, phase: bucket * 0.99, width: 5 }),
    bursts({ size: Math.ceil(limit / 5), every: bucket, phase: bucket * 0.98, width: 2 }),
  ]
}

/** Removes the first interval after an outage. Its windows reach back into the outage, so it counts as part of it. */
function withoutEchoes(result: SimulationResult): SimulationResult {
  const away = new Set(result.measured.filter(({ outage }) => outage).map(({ index }) => index))
  return { ...result, measured: result.measured.filter(({ index }) => !away.has(index - 1)) }
}

function outageScenarios(times: number, intervals: number) {
  return [0.2, 0.5, 1, 2].map((length) => slidingOf(MIDDLE, times, { intervals, quick: false }, { faults: scatteredOutages(length) }))
}
