import { type Load, zipf } from '@weir/testing'
import { atMost, type Goal, percent, pooled } from './goal.ts'
import { MIDDLE, nameOf, SMALL } from './settings.ts'
import { slidingOf } from './sliding-steady.ts'

/** Milliseconds. */
const SECOND = 1_000

/** Clients that keep a sliding window's limit, but come in bursts; and nodes with very different parts of the traffic. */
export const burstGoals: readonly Goal[] = [
  {
    id: 'N4',
    title: 'Sliding: honest bursts; operations where few nodes have most of the traffic',
    cases: (size) => [
      ...[90, 60].map((count) => ({
        name: `${count} requests within a second, once a minute, ${nameOf(SMALL)}`,
        scenarios: [slidingOf(SMALL, 0, size, { load: honestBursts(count) })],
        judge: (results: Parameters<typeof pooled>[0]) => {
          const { refusedUnderLimit, worstWindow } = pooled(results)
          return [atMost('refused under the limit', percent(refusedUnderLimit), 3), atMost('worst window max', percent(worstWindow.max), 5)]
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
]

/** So many requests at random moments of one second, the same one of each interval. */
function honestBursts(count: number): Load {
  return {
    name: `${count} requests within a second, once an interval`,
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
            times = Array.from({ length: count }, () => (cycle + PHASE) * interval + random.next() * SECOND).sort((a, b) => b - a)
          }
          this.time = times.pop() as number
        },
      }
      arrivals.advance()
      return arrivals
    },
  }
}

/** Where in the interval, as a part of it. */
const PHASE = 0.31
