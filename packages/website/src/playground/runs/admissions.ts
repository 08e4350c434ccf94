import { type Scenario, type SimulationResult, simulate } from '@weir/testing'
import { Recorder } from '../tape/recorder.ts'

/** Times of the allowed requests in milliseconds since the start, in order. Each request costs one unit. */
export interface Admissions {
  readonly times: readonly number[]
  readonly result: SimulationResult
}

/** Runs a scenario, and records the allowed requests. */
export async function admissions(scenario: Scenario): Promise<Admissions> {
  const recorder = new Recorder(scenario, 0)
  const result = await simulate(recorder.scenario)
  return { times: recorder.went, result }
}

/** Number of elements in an ascending list after `after` and up to `until`, inclusive. */
export function countIn(times: readonly number[], after: number, until: number): number {
  let count = 0
  for (const time of times) if (time > after && time <= until) count++
  return count
}

/** Milliseconds within which two moments count as equal, because sums of fractions are not exact. */
const SAME = 1e-6

/** The most elements in any range of this length. */
export function mostIn(times: readonly number[], length: number): number {
  let most = 0
  let first = 0
  times.forEach((time, last) => {
    while ((times[first] as number) <= time - length + SAME) first++
    most = Math.max(most, last - first + 1)
  })
  return most
}
