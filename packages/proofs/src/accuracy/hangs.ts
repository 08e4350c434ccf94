import { tokenBucket } from '@weir/core'
import { type Fault, type Figures, type OutageMode, poisson, type Scenario, type Summary } from '@weir/testing'
import { atMostYet, type Goal, type GoalCase, percent, pooled, type Size } from './goal.ts'
import { MIDDLE, nameOf, scenarioOf } from './settings.ts'
import { WINDOWS } from './weights.ts'

/** The algorithms that keep a limit, each with the figure for its overshoot. */
export const ALGORITHMS = [
  ...WINDOWS,
  { name: 'bucket', policy: { algorithm: tokenBucket() }, overshoot: ({ debt }: Figures): Summary => debt },
] as const

/** The length of a hang, in milliseconds. */
const HANG = 2_000
/** Intervals from one hang to the next, so that the whole limit is free again and processes have forgotten the load. */
const PERIOD = 3

/** A store that hangs at the worst moments. */
export const hangGoals: readonly Goal[] = [
  {
    id: 'H1',
    title: 'The store hangs for 2 s, from every phase of an interval',
    cases: (size) =>
      ALGORITHMS.flatMap((algorithm) =>
        (
          [
            // A full bucket opens now and then. A hang that begins at that moment allows more, which is paid back.
            ['messages lost', 'lose', 100, { fixed: 8, sliding: 10, bucket: 30 }],
            ['answered later', 'hang', 100, { fixed: 5, sliding: 20, bucket: 12 }],
            ['messages lost', 'lose', 2, { fixed: 12, sliding: 12, bucket: 9 }],
          ] as const
        ).map(([name, mode, times, kept]) => ({
          name: `${algorithm.name}, ${name}, x${times}, ${nameOf(MIDDLE)}`,
          scenarios: phasesOf(size).map((phases) => hanging(algorithm.policy, mode, times, phases, size)),
          judge: (results) => [atMostYet('overshoot max', percent(algorithm.overshoot(pooled(results)).max), 5, kept[algorithm.name])],
        })),
      ),
  },
  {
    id: 'H2',
    title: 'The store hangs for 2 s while a key fills',
    cases: (size) =>
      ALGORITHMS.flatMap((algorithm) =>
        (
          [
            [2, 5, { warm: 5, fixed: 15, sliding: 20, bucket: 12 }],
            [10, 8, { warm: 20, fixed: 40, sliding: 55, bucket: 8 }],
            [100, 30, { warm: 30, fixed: 65, sliding: 65, bucket: 30 }],
          ] as const
        ).flatMap(([times, most, kept]) =>
          // A bucket under overload is always nearly full, and so is a sliding window.
          (algorithm.name === 'fixed' ? (['warm', 'idle before'] as const) : (['idle before'] as const)).map((before) => ({
            name: `${algorithm.name}, after 20 to 97 % of the limit, x${times}, ${before}, ${nameOf(MIDDLE)}`,
            scenarios: [filling(algorithm.policy, times, before === 'warm', size)],
            judge: (results: Parameters<GoalCase['judge']>[0]) => [
              atMostYet(
                'overshoot max',
                percent(algorithm.overshoot(pooled(results)).max),
                most,
                kept[before === 'warm' ? before : algorithm.name],
              ),
            ],
          })),
        ),
      ),
  },
]

/**
 * Moments at which hangs begin, as parts of an interval: 50 evenly spread ones, and some that end within 100 ms after a boundary. A
 * flood has used up the limit by then. Hangs that begin earlier are tested by H2. The lists run in parallel.
 */
function phasesOf({ quick }: Size): readonly (readonly number[])[] {
  const regular = Array.from({ length: quick ? 10 : 50 }, (_, index) => (index + 0.6) / (quick ? 10 : 50))
  const late = (quick ? [1, 30] : [0, 1, 5, 10, 30, 70, 100]).map((after) => 1 + (after - HANG) / MIDDLE.interval)
  // The phases at which an earlier version overshot by a third.
  const between = quick ? [0.903] : [0.902, 0.903, 0.904]
  const all = [...regular, ...between, ...late]
  const lists = quick ? 1 : 6
  return Array.from({ length: lists }, (_, list) => all.filter((_phase, index) => index % lists === list))
}

function hanging(policy: object, mode: OutageMode, times: number, phases: readonly number[], size: Size): Scenario {
  return scenarioOf(MIDDLE, times, size, {
    policy: { ...MIDDLE, ...policy },
    warmup: 0,
    intervals: PERIOD * (phases.length + 1),
    faults: {
      name: `store hangs for ${HANG} ms (${mode}) from each of ${phases.length} phases`,
      plan: () => phases.map((phase, cycle) => hangFrom(PERIOD * (cycle + 1) + phase, mode)),
    },
  })
}

/** A hang in each third interval that begins with the interval: at a part of the time in which the limit is used up. */
function filling(policy: object, times: number, warm: boolean, size: Size): Scenario {
  const count = size.quick ? 8 : 20
  return scenarioOf(MIDDLE, 0, size, {
    policy: { ...MIDDLE, ...policy },
    warmup: 0,
    intervals: PERIOD * (count + 1),
    load: warm
      ? poisson(times)
      : {
          ...poisson((position) => {
            const begin = Math.floor(position / PERIOD) * PERIOD
            if (position < begin + 1) return { times, until: begin + 1 }
            return { times: 0, until: begin + PERIOD }
          }),
          name: `x${times} in every third interval`,
        },
    faults: {
      name: `store hangs for ${HANG} ms while the limit is used up`,
      plan: () =>
        Array.from({ length: count }, (_, cycle) => {
          const used = 0.2 + (0.77 * cycle) / (count - 1)
          return hangFrom(PERIOD * (cycle + 1) + used / times, 'lose')
        }),
    },
  })
}

function hangFrom(from: number, mode: OutageMode): Fault {
  return { kind: 'outage', from, until: from + HANG / MIDDLE.interval, mode }
}
