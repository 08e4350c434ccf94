import { createThrottler, memoryStore, type Policy, type PolicyOptions } from '@weir/core'
import { manualClock, poisson, type Scenario, type SimulationResult, simulate, uniform } from '@weir/testing'
import { numberOf, type Settings, textOf } from '../settings/settings.ts'
import { agreementOf, type Exceeding, testOf, type Yardstick } from './agreement.ts'
import { OptionsError, readOptions } from './read-options.ts'
import { type LogOutcome, replayLog } from './replay-log.ts'
import { balancingOf } from './scenario.ts'

const INTERVALS = 30
const FEWEST_INTERVALS = 5
/** The approximate number of requests of a run. */
const MOST_REQUESTS = 300_000
const MOST_PER_INTERVAL = 100_000
/** Simulated milliseconds of all processes together. Each process sends heartbeats, which cost real time. */
const MOST_TIME = 150_000_000
const WARM_UP = 2

/** A visitor's policy in a cluster. */
export interface PolicyOutcome extends Exceeding {
  readonly kind: 'policy'
  readonly digest: string
  /** The policy after the checks of core. */
  readonly understood: {
    readonly limit: number
    /** Milliseconds. */
    readonly interval: number
    readonly algorithm: string
    readonly coordination: string
    /** Bytes of numbers that a process keeps for a key, without the key itself. */
    readonly bytesPerKey: number
  }
  readonly intervals: number
  readonly requests: number
  readonly operations: number
  /** Requests that waited, as a part of the allowed requests. */
  readonly waited: number
  readonly allowedOfExact: number
  readonly agreement: string
  readonly test: string
  readonly log: LogOutcome | undefined
}

/** @param logs - access logs to replay, as texts or gzip files */
export async function runPolicy(settings: Settings, logs: readonly Blob[]): Promise<PolicyOutcome> {
  const options = readOptions(textOf(settings, 'options'))
  const policy = checked(options)
  const scenario = policyScenario(settings, options, policy)
  const result = await simulate(scenario)
  const yardstick = yardstickOf(policy)
  const figures = {
    yardstick,
    exceeded: { ...result[yardstick], p50: medianOf(result, yardstick) },
    wronglyRejected: wronglyRejected(result, yardstick),
    operations: result.operations,
    waited: result.waited,
  }
  return {
    kind: 'policy',
    digest: result.digest,
    understood: {
      limit: policy.limit,
      interval: policy.interval,
      algorithm: policy.algorithm.name,
      coordination: policy.coordination,
      bytesPerKey: (policy.algorithm.fields ?? 0) * 8,
    },
    intervals: result.intervals,
    requests: result.requests,
    ...figures,
    allowedOfExact: result.allowedOfExact,
    agreement: agreementOf(settings, policy, figures),
    test: testOf(settings, figures, result.intervals),
    log: await replayLog(options, logs),
  }
}

/** The scenario of a policy, the same as in the test to copy. */
function policyScenario(settings: Settings, options: PolicyOptions, policy: Policy): Scenario {
  const { limit, interval } = policy
  const nodes = numberOf(settings, 'nodes')
  const load = numberOf(settings, 'load')
  if (limit * load > MOST_PER_INTERVAL) {
    throw new OptionsError(
      `${limit} requests at ${load} times the limit are more than a page can run: at most ${MOST_PER_INTERVAL} in an interval`,
    )
  }
  const lasting = Math.floor(MOST_TIME / (interval * nodes)) - WARM_UP
  if (lasting < FEWEST_INTERVALS) {
    throw new OptionsError(
      'This interval is too long to simulate in a page. Use a shorter interval with the same limit, or fewer processes',
    )
  }
  return {
    policy: options,
    nodes,
    intervals: Math.max(FEWEST_INTERVALS, Math.min(INTERVALS, lasting, Math.floor(MOST_REQUESTS / (limit * load)))),
    warmup: WARM_UP,
    load: poisson(load),
    balancing: textOf(settings, 'balancing') === 'even' ? uniform : balancingOf(textOf(settings, 'balancing')),
    network: { latency: numberOf(settings, 'rtt') / 2 },
    seed: numberOf(settings, 'seed'),
    // A bucket with early drop rejects by chance, so a rejection does not predict the next one.
    ...(yardstickOf(policy) === 'debt' && { shortcut: false }),
  }
}

/** The policy after core has checked it, like at the start of a program. */
function checked(options: PolicyOptions): Policy {
  const throttler = createThrottler({ policies: [options], clock: manualClock(), store: memoryStore() })
  const policy = throttler.policies[0] as Policy
  if (policy.coordination === 'central') {
    throw new OptionsError(
      "With 'central' the store decides each request, so exactly the limit is allowed, with one operation and one round trip per request. There is nothing to simulate",
    )
  }
  if (policy.algorithm.slots !== undefined)
    throw new OptionsError('concurrency() limits requests in flight, but requests of this page have no duration')
  if (typeof options.limit !== 'number' || policy.calendar !== undefined) {
    throw new OptionsError('This page runs policies with one limit, and intervals of one length')
  }
  return policy
}

function yardstickOf({ algorithm }: Policy): Yardstick {
  if ((algorithm.subWindows ?? 1) > 1) return 'worstWindow'
  return algorithm.step?.id === 'bucket' ? 'debt' : 'overshoot'
}

function wronglyRejected(result: SimulationResult, yardstick: Yardstick): number {
  if (yardstick === 'worstWindow') return result.rejectedUnderLimit
  return yardstick === 'debt' ? result.rejectedWithRoom / Math.max(1, result.requests) : result.falseRequests
}

function medianOf({ measured, policy: { limit } }: SimulationResult, yardstick: Yardstick): number {
  const values = measured
    .map((interval) =>
      yardstick === 'debt' ? interval.debt : Math.max(0, (yardstick === 'overshoot' ? interval.allowed : interval.worstWindow) - limit),
    )
    .sort((one, other) => one - other)
  return (values[Math.ceil(values.length / 2) - 1] ?? 0) / limit
}
