import type { PolicyOptions } from '@weir/core'
import { type Balancing, type Fault, faults, poisson, roundRobin, type Scenario, sticky, zipf } from '@weir/testing'
import { numberOf, type Settings, textOf } from '../settings/settings.ts'

/** Simulated milliseconds of a run, unless it would have too many requests. */
const LENGTH = 600_000
/** The approximate number of requests of a run. */
const MOST_REQUESTS = 300_000
const FEWEST_INTERVALS = 3
const MOST_INTERVALS = 60

/** Milliseconds. */
export function intervalOf(settings: Settings): number {
  return numberOf(settings, 'interval') * 1000
}

export function policyOf(settings: Settings): PolicyOptions {
  const policy = { limit: numberOf(settings, 'limit'), interval: intervalOf(settings) }
  const failMode = textOf(settings, 'failMode')
  return failMode === 'open' || failMode === 'closed' ? { ...policy, failMode } : policy
}

/** The number of intervals to run. It is the same for all loads that are light enough. */
export function intervalsOf(settings: Settings): number {
  const perInterval = numberOf(settings, 'limit') * numberOf(settings, 'load')
  const affordable = Math.floor(Math.min(LENGTH / intervalOf(settings), MOST_REQUESTS / perInterval))
  return Math.max(FEWEST_INTERVALS, Math.min(MOST_INTERVALS, affordable))
}

/** The cluster of a scene, for `simulate`. It starts cold, and no warm-up is left out. */
export function scenarioOf(settings: Settings): Scenario {
  return {
    policy: policyOf(settings),
    nodes: numberOf(settings, 'nodes'),
    intervals: intervalsOf(settings),
    warmup: 0,
    load: poisson(numberOf(settings, 'load')),
    balancing: balancingOf(textOf(settings, 'balancing')),
    network: { latency: numberOf(settings, 'rtt') / 2 },
    seed: numberOf(settings, 'seed'),
    faults: faults(...faultsOf(settings)),
  }
}

export function balancingOf(name: string): Balancing {
  if (name === 'zipf') return zipf()
  // Round robin instead of chance, so that the processes get the same load.
  return name === 'sticky' ? sticky : roundRobin
}

/** Faults of the store, or of the network to it. Positions are in intervals. */
export function faultsOf(settings: Settings): readonly Fault[] {
  const fault = textOf(settings, 'fault')
  if (fault === '' || fault === 'none') return []
  const from = numberOf(settings, 'from')
  const until = Math.max(from, numberOf(settings, 'until'))
  if (until === from) return []
  switch (fault) {
    case 'cut': {
      const half = Math.ceil(numberOf(settings, 'nodes') / 2)
      return Array.from({ length: half }, (_, node): Fault => ({ kind: 'partition', from, until, node }))
    }
    case 'empty':
      return [
        { kind: 'outage', from, until },
        { kind: 'data-loss', at: until },
      ]
    default:
      return [{ kind: 'outage', from, until, mode: fault === 'hang' ? 'hang' : 'reject' }]
  }
}
