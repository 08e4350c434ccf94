import { describeScenario, type Scenario } from './scenario.ts'
import { type SimulationResult, simulate } from './simulate.ts'

/** Throws if a result is not as expected. */
export type Expectation = (result: SimulationResult) => void

/**
 * Runs a scenario and checks the result. If the check fails, the message names the seed and the shortest scenario found that fails
 * as well: fewer intervals, then fewer processes.
 *
 * @throws Error with the failed check as its cause
 *
 * @example
 * await expectSimulation({ policy, nodes: 8, intervals: 30, load: poisson(2), seed: 42 }, ({ overshoot }) => {
 *   expect(overshoot.p95).toBeLessThan(0.05)
 * })
 */
export async function expectSimulation(scenario: Scenario, expectation: Expectation): Promise<SimulationResult> {
  const result = await simulate(scenario).catch((error: unknown) => ({ error }))
  const cause = 'error' in result ? result.error : failureOf(result, expectation)
  if (cause === undefined && !('error' in result)) return result
  const shortest = await shorten(scenario, expectation)
  const reason = cause instanceof Error ? cause.message : String(cause)
  throw new Error(`${reason}\n  in: ${describeScenario(scenario)}\n  shortest that fails: ${describeScenario(shortest)}`, { cause })
}

/** Finds the shortest scenario that still fails. Returns the given one if no shorter one fails. */
export async function shorten(scenario: Scenario, expectation: Expectation): Promise<Scenario> {
  const fails = async (candidate: Scenario): Promise<boolean> => {
    try {
      expectation(await simulate(candidate))
      return false
    } catch {
      return true
    }
  }
  let shortest = scenario
  // A run with fewer intervals is the start of the longer one, so halving finds the first failure.
  shortest = await leastThat(scenario.intervals, (intervals) => ({ ...shortest, intervals }), fails, shortest)
  shortest = await leastThat(scenario.nodes ?? 3, (nodes) => ({ ...shortest, nodes }), fails, shortest)
  return shortest
}

/** Tries 1, and then halves the distance between a count that passes and a count that fails. */
async function leastThat(
  most: number,
  make: (count: number) => Scenario,
  fails: (scenario: Scenario) => Promise<boolean>,
  known: Scenario,
): Promise<Scenario> {
  let failing = known
  let low = 0
  let high = most
  while (high - low > 1) {
    const middle = low === 0 && high === most ? 1 : Math.floor((low + high) / 2)
    const candidate = make(middle)
    if (await fails(candidate)) {
      high = middle
      failing = candidate
    } else {
      low = middle
    }
  }
  return failing
}

function failureOf(result: SimulationResult, expectation: Expectation): unknown {
  try {
    expectation(result)
    return undefined
  } catch (error) {
    return error
  }
}
