import { type Scenario, type SimulationResult, simulate } from '@weir/testing'
import { numberOf, type Settings } from '../settings/settings.ts'
import { Recorder } from '../tape/recorder.ts'
import type { Tape } from '../tape/tape.ts'
import { faultsOf, intervalOf, intervalsOf, scenarioOf } from './scenario.ts'

/** One way to count the run's requests. Shares are fractions. */
export interface Way {
  readonly name: string
  /** Units allowed in each interval. */
  readonly perInterval: readonly number[]
  /** Units allowed, as a part of the units that an exact limiter allows for the same requests. */
  readonly allowedOfExact: number
  /** The largest overshoot of an interval, as a part of the limit. */
  readonly worst: number
  /** Requests rejected although the limit was not reached, as a part of all requests. */
  readonly falselyRejected: number
  /** Key writes in the store per request. */
  readonly operations: number
  /** Milliseconds that each request waits. */
  readonly wait: number
}

/** A cluster in time, and a comparison with other ways to count. */
export interface LanesOutcome {
  readonly kind: 'lanes'
  readonly nodes: number
  readonly limit: number
  /** Milliseconds. */
  readonly interval: number
  readonly intervals: number
  /** Fingerprint of all decisions. */
  readonly digest: string
  readonly requests: number
  readonly tape: Tape
  /** Requests of each interval. */
  readonly offered: readonly number[]
  /** The first way is Weir's. */
  readonly ways: readonly Way[]
  /** Milliseconds since the start. Undefined without a fault. */
  readonly fault: { readonly from: number; readonly until: number } | undefined
}

/** Runs a cluster, and per-process counters and a central counter with the same requests. */
export async function runLanes(settings: Settings): Promise<LanesOutcome> {
  const scenario = scenarioOf(settings)
  const interval = intervalOf(settings)
  const recorder = new Recorder(scenario, numberOf(settings, 'rtt') / 2)
  const result = await simulate(recorder.scenario)
  const limit = numberOf(settings, 'limit')
  const planned = faultsOf(settings).find((fault) => 'until' in fault)
  return {
    kind: 'lanes',
    nodes: numberOf(settings, 'nodes'),
    limit,
    interval,
    intervals: intervalsOf(settings),
    digest: result.digest,
    requests: result.requests,
    tape: recorder.tape(intervalsOf(settings) * interval),
    offered: result.measured.map(({ requests }) => requests),
    ways: [
      wayOf('Weir, in the background', result, result.store.entries / result.requests),
      wayOf('A counter in each process', await simulate(perProcess(scenario)), 0),
      central(result, limit, numberOf(settings, 'rtt'), planned !== undefined),
    ],
    fault: planned !== undefined && 'from' in planned ? { from: planned.from * interval, until: planned.until * interval } : undefined,
  }
}

/** The same requests without syncs. The requests and their processes depend only on the seed. */
function perProcess(scenario: Scenario): Scenario {
  const { limit, interval } = scenario.policy
  return { ...scenario, policy: { limit, interval, coordination: 'local' } }
}

function wayOf(name: string, { measured, allowedOfExact, overshoot, falseRequests }: SimulationResult, operations: number): Way {
  return {
    name,
    perInterval: measured.map(({ allowed }) => allowed),
    allowedOfExact,
    worst: overshoot.max,
    falselyRejected: falseRequests,
    operations: Number.isFinite(operations) ? operations : 0,
    wait: 0,
  }
}

/** The requests that an exact counter allows. Each request waits for its reply. */
function central({ measured }: SimulationResult, limit: number, roundTrip: number, away: boolean): Way {
  const perInterval = measured.map(({ exact }) => exact)
  return {
    // With its store down the counter could decide nothing. The figures show its result with a store that stays up.
    name: away ? 'A central counter, if its store stayed up' : 'A central counter',
    perInterval,
    allowedOfExact: 1,
    worst: Math.max(0, ...perInterval.map((units) => units / limit - 1)),
    falselyRejected: 0,
    operations: 1,
    wait: roundTrip,
  }
}
