import { type Load, zipf } from '@weir/testing'
import { atMost, type Goal, percent, pooled, sum } from './goal.ts'
import { MIDDLE, nameOf, type Setting, SMALL } from './settings.ts'
import { slidingOf } from './sliding-steady.ts'

/** Requests that come together. Times are in milliseconds. */
interface Burst {
  readonly count: number
  readonly width: number
  /** The most that a burst may start early or late, compared with one interval after the previous burst. */
  readonly jitter?: number
}

const SECOND = 1_000
const MINUTE = 60_000

const HONEST: readonly (readonly [setting: Setting, burst: Burst])[] = [
  [SMALL, { count: 90, width: SECOND }],
  [MIDDLE, { count: 900, width: 200, jitter: 50 }],
  [
    { ...MIDDLE, interval: MINUTE },
    { count: 900, width: 200, jitter: 50 },
  ],
]

/** Clients that keep a sliding window's limit but send bursts, and processes with very different parts of the traffic. */
export const burstGoals: readonly Goal[] = [
  {
    id: 'N4',
    title: 'Sliding: honest bursts; operations where few nodes have most of the traffic',
    cases: (size) => [
      ...[90, 60].map((count) => ({
        name: `${count} requests within a second, once a minute, ${nameOf(SMALL)}`,
        scenarios: [slidingOf(SMALL, 0, size, { load: honestBursts({ count, width: SECOND }) })],
        judge: (results: Parameters<typeof pooled>[0]) => {
          const { rejectedUnderLimit, worstWindow } = pooled(results)
          return [
            atMost('rejected under the limit', percent(rejectedUnderLimit), 3),
            atMost('worst window max', percent(worstWindow.max), 5),
          ]
        },
      })),
      ...(
        [
          [1.1, 288],
          [2, 276],
          [100, 114],
        ] as const
      ).map(([times, most]) => ({
        name: `x${times}, zipf 1, ${nameOf(MIDDLE)}`,
        scenarios: [slidingOf(MIDDLE, times, size, { balancing: zipf() })],
        judge: (results: Parameters<typeof pooled>[0]) => [atMost('operations', pooled(results).operations, most, 'ops')],
      })),
    ],
  },
  {
    id: 'H4',
    title: 'Sliding: honest bursts, beside an exact log',
    cases: (size) =>
      HONEST.flatMap(([setting, burst]) =>
        [1, 3, 12].map((nodes) => ({
          name: `${burst.count} requests within ${burst.width} ms, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}, ${nameOf(setting)}`,
          scenarios: [slidingOf(setting, 0, size, { nodes, load: honestBursts(burst) })],
          judge: (results: Parameters<typeof pooled>[0]) => {
            const { requests, worstWindow } = pooled(results)
            const beyondExact = sum(results, ({ measured }) => measured.reduce((units, { exact, allowed }) => units + exact - allowed, 0))
            return [
              atMost('rejected beyond an exact log', percent(beyondExact / requests), 3),
              atMost('worst window max', percent(worstWindow.max), 5),
            ]
          },
        })),
      ),
  },
]

/** Requests at random moments of a stretch that comes once an interval. */
function honestBursts({ count, width, jitter = 0 }: Burst): Load {
  return {
    name: `${count} requests within ${width} ms, once an interval`,
    start: ({ random, interval, key }) => {
      let cycle = -1
      let times: number[] = []
      const arrivals = {
        time: 0,
        key,
        cost: 1,
        advance() {
          if (times.length === 0) {
            cycle++
            const begin = (cycle + PHASE) * interval + (jitter === 0 ? 0 : (2 * random.next() - 1) * jitter)
            times = Array.from({ length: count }, () => begin + random.next() * width).sort((a, b) => b - a)
          }
          this.time = times.pop() as number
        },
      }
      arrivals.advance()
      return arrivals
    },
  }
}

/** The start of the stretch, as a part of the interval. */
const PHASE = 0.31
