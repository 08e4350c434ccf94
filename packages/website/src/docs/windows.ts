import type { PolicyOptions } from '@weir/core'
import { slidingCounter, slidingWindow } from '@weir/core'
import { MIDDLE, run } from './accuracy.ts'
import { type Figure, percent, whole } from './figure.ts'
import { bytesPerBusyKey, bytesPerKey } from './memory.ts'

const SHAPES: readonly (readonly [string, Pick<PolicyOptions, 'algorithm' | 'coordination'>])[] = [
  ['`fixedWindow()`, `background` (default)', {}],
  ['`fixedWindow()`, `periodic`', { coordination: 'periodic' }],
  ['`slidingWindow()`, `background`', { algorithm: slidingWindow() }],
  ['`slidingCounter()`, `periodic`', { algorithm: slidingCounter(), coordination: 'periodic' }],
]

/** The cost of each window, side by side. */
export const windows: Figure = {
  name: 'windows',
  makes: ['windows-limits', 'windows-costs', 'reopen-at'],
  about: 'accuracy, operations, throughput and memory of each window (some minutes)',
  async make() {
    const limits = [
      [
        'window',
        'most in any interval length, ×1.1',
        '×2',
        '×100',
        'rejected although within the limit, ×0.9',
        'allowed of what an exact limiter would, ×1.1',
        '×2',
        '×100',
      ],
    ]
    const costs = [
      [
        'window',
        'operations ×0.1',
        '×0.9',
        '×1.1',
        '×100',
        'bytes per quiet key in a node',
        'bytes per exchanged key',
        'bytes per key busy all the time',
      ],
    ]
    for (const [name, shape] of SHAPES) {
      const policy = { ...MIDDLE, ...shape }
      const [tenth, below, above, double, flood] = await inTurn([0.1, 0.9, 1.1, 2, 100], (times) => run(policy, times))
      limits.push([
        name,
        ...[above, double, flood].map((result) => percent(1 + (result?.worstWindow.p95 ?? 0), 0)),
        percent(shape.algorithm !== undefined ? (below?.rejectedUnderLimit ?? 0) : (below?.falseRequests ?? 0), 2),
        ...[above, double, flood].map((result) => percent(result?.allowedOfExact ?? 0, 0)),
      ])
      costs.push([
        name,
        ...[tenth, below, above, flood].map((result) => whole(result?.operations ?? 0)),
        about(await bytesPerKey(policy, 1)),
        about(await bytesPerKey(policy, 600)),
        about(await bytesPerBusyKey(policy)),
      ])
    }
    return { tables: { 'windows-limits': limits, 'windows-costs': costs, 'reopen-at': await reopenings() } }
  },
}

/** The effect of `reopenAt` and `subWindows` on a key that is constantly over its limit. */
async function reopenings(): Promise<string[][]> {
  const rows = [['policy', 'allowed of what an exact limiter would, ×1.1', '×2', 'operations ×1.1', '×2']]
  for (const [reopen, buckets] of [
    [0.02, 30],
    [0.1, 30],
    [0.3, 30],
    [0.1, 10],
    [0.1, 60],
  ] as const) {
    const [above, double] = await inTurn([1.1, 2], (times) =>
      run({ ...MIDDLE, algorithm: slidingWindow({ reopenAt: reopen, subWindows: buckets }) }, times),
    )
    rows.push([
      `\`reopenAt: ${reopen}, subWindows: ${buckets}\``,
      percent(above?.allowedOfExact ?? 0, 0),
      percent(double?.allowedOfExact ?? 0, 0),
      whole(above?.operations ?? 0),
      whole(double?.operations ?? 0),
    ])
  }
  return rows
}

/** Two digits, because the memory of a process differs by some per cent between runs. */
function about(bytes: number): string {
  return whole(Number(bytes.toPrecision(2)))
}

async function inTurn<In, Out>(list: readonly In[], make: (one: In) => Promise<Out>): Promise<Out[]> {
  const made: Out[] = []
  for (const one of list) made.push(await make(one))
  return made
}
