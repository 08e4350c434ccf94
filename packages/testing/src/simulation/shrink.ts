import { describeScenario, type Scenario } from './scenario.ts'
import { type SimulationResult, simulate } from './simulate.ts'

/** Throws when a result is not what it should be. */
export type Expectation = (result: SimulationResult) => void

/**
 * Runs a scenario and checks what came out. If the check fails, the message names the seed and the shortest scenario
 * found that fails as well: fewer intervals, then fewer nodes.
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

/** The shortest scenario found that still fails; the given one when none is shorter. */
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
  // A run with fewer intervals is the beginning of the longer one, so the failure that comes first is found by halving.
  shortest = await leastThat(scenario.intervals, (intervals) => ({ ...shortest, intervals }), fails, shortest)
  shortest = await leastThat(scenario.nodes ?? 3, (nodes) => ({ ...shortest, nodes }), fails, shortest)
  return shortest
}

/** Tries 1, and then halves the distance between what passes and what fails. */
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
