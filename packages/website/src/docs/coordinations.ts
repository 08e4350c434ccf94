import type { PolicyOptions } from '@weir/core'
import { type FaultPlan, figuresOf, type SimulationResult } from '@weir/testing'
import { MIDDLE, run } from './accuracy.ts'
import { type Figure, percent, whole } from './figure.ts'

const SETTINGS: readonly (readonly [name: string, options: Pick<PolicyOptions, 'coordination' | 'failMode'>])[] = [
  ["`'local'`", { coordination: 'local' }],
  ["`'background'`, the default", {}],
  ["`'leased'`, `failMode: 'closed'`", { coordination: 'leased', failMode: 'closed' }],
  ["`'periodic'`", { coordination: 'periodic' }],
]

/** The store is down for an interval and a half in every fifth interval. */
const away: FaultPlan = {
  name: 'the store is away again and again',
  plan: ({ intervals }) =>
    Array.from({ length: Math.floor(intervals / 5) }, (_, turn) => {
      const from = 3.2 + 5 * turn
      return { kind: 'outage' as const, from, until: from + 1.5 }
    }),
}

/** The worst interval in which the store was down. */
function worstAway({ measured }: SimulationResult): string {
  const { overshoot } = figuresOf(
    measured.filter(({ outage }) => outage),
    MIDDLE.limit,
  )
  return percent(overshoot.max)
}

/** The overshoot, the wrong rejections and the store commands of each coordination. */
export const coordinations: Figure = {
  name: 'coordinations',
  makes: ['coordinations', 'coordinations-away'],
  about: 'what each coordination costs, and what it allows while the store is away (a minute)',
  async make() {
    const costs = [
      [
        'coordination',
        'overshoot at ×1.1',
        'at ×2',
        'at ×100',
        'rejected below the limit, ×0.9',
        'operations at ×0.9',
        'at ×1.1',
        'at ×100',
      ],
    ]
    const loses = [['coordination', 'worst interval at ×1.1', 'at ×2', 'at ×100', 'rejected below the limit, ×0.9']]
    for (const [name, options] of SETTINGS) {
      const policy = { ...MIDDLE, ...options }
      const up: SimulationResult[] = []
      const down: SimulationResult[] = []
      for (const times of [0.9, 1.1, 2, 100]) {
        up.push(await run(policy, times))
        down.push(await run(policy, times, { faults: away }))
      }
      const [below, ...above] = up
      costs.push([
        name,
        ...above.map(({ overshoot }) => percent(overshoot.p95)),
        percent(below?.falseRequests ?? Number.NaN),
        ...[up[0], up[1], up[3]].map((result) => whole(result?.operations ?? Number.NaN)),
      ])
      const [quiet, ...busy] = down
      loses.push([name, ...busy.map(worstAway), percent(quiet?.falseRequests ?? Number.NaN)])
    }
    return { tables: { coordinations: costs, 'coordinations-away': loses } }
  },
}
