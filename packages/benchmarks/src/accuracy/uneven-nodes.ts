import { zipf } from '@weir/testing'
import { atMost, type Goal, pooled } from './goal.ts'
import { MIDDLE, nameOf } from './settings.ts'
import { slidingOf } from './sliding-steady.ts'

/** Nodes with very different parts of the traffic. */
export const unevenGoals: readonly Goal[] = [
  {
    id: 'N4',
    title: 'Sliding: operations where few nodes have most of the traffic',
    cases: (size) =>
      (
        [
          [1.1, 288],
          [2, 276],
          [100, 114],
        ] as const
      ).map(([times, most]) => ({
        name: `x${times}, zipf 1, ${nameOf(MIDDLE)}`,
        scenarios: [slidingOf(MIDDLE, times, size, { balancing: zipf() })],
        judge: (results) => [atMost('operations', pooled(results).operations, most, 'ops')],
      })),
  },
]
