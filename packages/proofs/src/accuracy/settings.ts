import {
  type Balancing,
  crashes,
  doubling,
  type FaultPlan,
  moving,
  poisson,
  restarts,
  roundRobin,
  type Scenario,
  sticky,
  uniform,
  zipf,
} from '@weir/testing'
import type { GoalCase, Size } from './goal.ts'

/** The limits that goals are stated for. */
export const SMALL = { limit: 100, interval: 60_000 }
export const MIDDLE = { limit: 1000, interval: 10_000 }
export const LARGE = { limit: 10_000, interval: 60_000 }
export const SETTINGS = [SMALL, MIDDLE, LARGE] as const

export type Setting = (typeof SETTINGS)[number]

/** A number for each setting. */
export type Triple = readonly [small: number, middle: number, large: number]

/** The number of processes, unless a goal has another. */
export const NODES = 12

export function nameOf({ limit, interval }: Setting): string {
  return `${limit} per ${interval / 1000} s`
}

/** A cluster of 12 processes with a round trip of 1 ms, under a steady load. */
export function scenarioOf(setting: Setting, times: number, size: Size, more: Partial<Scenario> = {}): Scenario {
  return { policy: setting, nodes: NODES, intervals: size.intervals, load: poisson(times), ...more }
}

/** One case for each setting. */
export function forEachSetting(make: (setting: Setting, index: 0 | 1 | 2) => GoalCase | readonly GoalCase[]): readonly GoalCase[] {
  return SETTINGS.flatMap((setting, index) => make(setting, index as 0 | 1 | 2))
}

/** A way to spread requests over processes that may start and end. */
export interface Spread {
  readonly name: string
  readonly balancing?: Balancing
  readonly faults?: FaultPlan
}

/** Every balancing that goals name. */
export const SPREADS: readonly Spread[] = [
  { name: 'uniform', balancing: uniform },
  { name: 'round robin', balancing: roundRobin },
  { name: 'sticky', balancing: sticky },
  { name: 'zipf', balancing: zipf() },
  { name: 'moving', balancing: moving() },
  { name: 'restarting nodes', faults: restarts },
  { name: 'scaling nodes', faults: doubling() },
]

export const CRASHING: Spread = { name: 'crashing nodes', faults: crashes }

/** Scenario fields of a spread. */
export function spreadOf({ balancing, faults }: Spread): Partial<Scenario> {
  return { ...(balancing && { balancing }), ...(faults && { faults }) }
}
