import { type Figures, figuresOf, type IntervalMeasure, type Scenario, type SimulationResult } from '@weir/testing'

/** A measured figure, and its bounds. Without a bound it is only stated. */
export interface Figure {
  readonly name: string
  readonly value: number
  /** The greatest allowed value. */
  readonly most?: number
  /** The smallest allowed value. */
  readonly least?: number
  /** The greatest value until the goal is reached, if it is not reached yet. */
  readonly kept?: number
  readonly unit: '%' | 'ms' | 'ops' | 'units' | 'requests'
}

/** One line of a goal: scenarios whose results are judged together. */
export interface GoalCase {
  readonly name: string
  /** Scenarios that run with each seed. `judge` receives all results together. */
  readonly scenarios: readonly Scenario[]
  judge(results: readonly SimulationResult[]): readonly Figure[]
  /** Measures without a scenario, once with each seed. The worst figures of all seeds count. */
  measure?(seed: number): Promise<readonly Figure[]>
}

/** A promise of Weir, and its measurement. */
export interface Goal {
  /** '1' to '22' for fixed windows, 'S1' to 'S15' for sliding ones, 'N1' to 'N10' for both, 'H1' to 'H4' for hangs, starts and honest bursts, 'B2' to 'B20' for buckets, 'L1' to 'L7' for leases, 'R1' to 'R4' for reservations, 'F1' for frozen processes. */
  readonly id: string
  readonly title: string
  cases(size: Size): readonly GoalCase[]
}

/** The size of a simulation. */
export interface Size {
  /** Measured intervals of a scenario, at least. */
  readonly intervals: number
  /** Reduces the combinations, too, for a run of a minute. */
  readonly quick: boolean
}

/** The judgement of a figure. A figure that misses its goal must stay within its own documented bound. */
export type Verdict = 'holds' | 'misses' | 'FAILS'

export function verdictOf({ value, most, least, kept }: Figure): Verdict {
  if ((most === undefined || value <= most) && (least === undefined || value >= least)) return 'holds'
  return kept !== undefined && value <= kept ? 'misses' : 'FAILS'
}

/** The worst of several measurements of the same figures. */
export function worst(measured: readonly (readonly Figure[])[]): readonly Figure[] {
  const [first = []] = measured
  return first.map((figure, at) => {
    const values = measured.map((figures) => (figures[at] as Figure).value)
    return { ...figure, value: figure.least === undefined ? Math.max(...values) : Math.min(...values) }
  })
}

export function atMost(name: string, value: number, most: number, unit: Figure['unit'] = '%'): Figure {
  return { name, value, most, unit }
}

export function atLeast(name: string, value: number, least: number, unit: Figure['unit'] = '%'): Figure {
  return { name, value, least, unit }
}

/** Makes a figure like `atMost`, for a goal that is not reached. @param kept the bound until then */
export function atMostYet(name: string, value: number, most: number, kept: number): Figure {
  return { name, value, most, kept, unit: '%' }
}

/** The figures of all measured intervals of some runs, or of the chosen intervals. */
export function pooled(results: readonly SimulationResult[], wanted: (interval: IntervalMeasure) => boolean = () => true): Figures {
  const limits = new Set(results.map((result) => result.policy.limit))
  if (limits.size > 1) throw new Error('Results of different limits have no figures in common')
  const [limit = 1] = limits
  return figuresOf(
    results.flatMap((result) => result.measured.filter(wanted)),
    limit,
  )
}

/** A sum over results whose limits may differ. */
export function sum(results: readonly SimulationResult[], pick: (result: SimulationResult) => number): number {
  return results.reduce((total, result) => total + pick(result), 0)
}

export function percent(fraction: number): number {
  return fraction * 100
}
