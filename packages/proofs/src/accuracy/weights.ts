import { createThrottler, slidingWindow } from '@weir/core'
import { bursts, type Figures, type NodeContext, poisson, type Scenario, type SimulatedNode, type Summary, together } from '@weir/testing'
import { atLeast, atMost, type Figure, type Goal, percent, pooled, type Size } from './goal.ts'
import { SMALL, scenarioOf } from './settings.ts'

/** A limit so fast that a round trip of 1 ms lets a flood overshoot it. */
const FAST = { limit: 100, interval: 1_000 }

/** Both windows, each with the figure for its overshoot. */
export const WINDOWS = [
  { name: 'fixed', policy: {}, overshoot: ({ overshoot }: Figures): Summary => overshoot },
  { name: 'sliding', policy: { algorithm: slidingWindow() }, overshoot: ({ worstWindow }: Figures): Summary => worstWindow },
] as const

/** Requests that cost many units, and units that are charged later. */
export const weightGoals: readonly Goal[] = [
  {
    id: 'N1',
    title: 'Requests that cost many units, of a limit of 100',
    cases: (size) =>
      WINDOWS.flatMap(({ name, policy, overshoot }, window) => {
        const one = (
          load: {
            readonly times: number
            readonly cost: number | readonly [number, number]
            readonly nodes?: number
            readonly setting?: typeof SMALL
          },
          judge: (summary: Summary, figures: Figures) => readonly Figure[],
        ) => {
          const { times, cost, nodes = 12, setting = SMALL } = load
          const costs = typeof cost === 'number' ? `${cost}` : cost.join(' to ')
          return {
            name: `${name}, costs ${costs}, x${times}, ${nodes} nodes, 100 per ${setting.interval / 1000} s`,
            scenarios: [scenarioOf(setting, 0, size, { policy: { ...setting, ...policy }, nodes, load: poisson(times, { cost }) })],
            judge: (results: Parameters<typeof pooled>[0]) => judge(overshoot(pooled(results)), pooled(results)),
          }
        }
        const usual = (times: number, max: number, operations: number) =>
          one({ times, cost: [1, 50] }, (over, figures) => [
            atMost('overshoot p95', percent(over.p95), 1),
            atMost('overshoot max', percent(over.max), max),
            atMost('operations', figures.operations, operations, 'ops'),
          ])
        const flood = (cost: number | readonly [number, number], setting: typeof SMALL, mean: number, max: number) =>
          one({ times: 100, cost, setting }, (over) => [
            atMost('overshoot mean', percent(over.mean), mean),
            atMost('overshoot max', percent(over.max), max),
          ])
        // The bounds for operations are a tenth more than before large writes were announced.
        return [
          usual(0.9, 5, ([3.4, 3] as const)[window] as number),
          usual(1.1, 12, ([3.9, 3.2] as const)[window] as number),
          one({ times: 2, cost: 30, nodes: 3 }, (over, figures) => [
            atMost('overshoot mean', percent(over.mean), 0.5),
            atMost('operations', figures.operations, ([4.2, 3.1] as const)[window] as number, 'ops'),
          ]),
          flood([1, 50], SMALL, 5, 15),
          flood([1, 50], FAST, 15, 90),
        ]
      }),
  },
  {
    id: 'N7',
    title: 'A charge of twice the limit is told at once',
    cases: (size) =>
      WINDOWS.map(({ name, policy }) => ({
        name: `${name}, one charge in three intervals, x2 besides, 100 per 60 s`,
        scenarios: [charged(size, policy)],
        judge: (results) => {
          const after = results.flatMap(({ measured }) => measured.filter(({ allowed }) => allowed >= CHARGE))
          const most = Math.max(...after.map(({ allowed }) => allowed - CHARGE))
          return [atLeast('charges', after.length, 1, 'requests'), atMost('allowed after one', most, 2, 'units')]
        },
      })),
  },
]

const CHARGE = 2 * SMALL.limit
/** The moment in the interval, as a part of it. It is in the middle of a span. */
const CHARGED_AT = 1 / 15
/** Milliseconds after which the real cost is charged. */
const LATER = 20

function charged(size: Size, policy: object): Scenario {
  return scenarioOf(SMALL, 0, size, {
    policy: { ...SMALL, ...policy },
    load: together(bursts({ size: 1, every: 3, phase: CHARGED_AT }, { cost: CHARGE }), besides()),
    node: chargingNode,
  })
}

/** Twice the limit in every third interval, from the charge on, so that the charged request fits into a sliding window. */
function besides() {
  return poisson((position) => {
    const begin = Math.floor(position / 3) * 3
    if (position < begin + CHARGED_AT) return { times: 0, until: begin + CHARGED_AT }
    return position < begin + 1 ? { times: 2, until: begin + 1 } : { times: 0, until: begin + 3 }
  })
}

/** A process that learns the real cost of a request a little after it has allowed the request as one unit. */
function chargingNode({ policy, store, clock, random }: NodeContext): SimulatedNode {
  const throttler = createThrottler({ policies: [policy], store, clock, random })
  return {
    nodeId: throttler.nodeId,
    start: () => throttler.start(),
    close: () => throttler.close(),
    check(key, cost = 1) {
      const decision = throttler.check(key)
      if (decision.allowed && cost > 1) clock.setTimeout(() => throttler.charge(decision, cost - 1), LATER)
      return decision
    },
  }
}
