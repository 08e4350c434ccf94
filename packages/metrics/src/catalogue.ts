import type { Snapshot } from '@weir/core/inspect'

/** One value of a metric, with its labels. */
export interface Reading {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric in the terms of both libraries. */
export interface Metric {
  /** Name in OpenTelemetry. */
  readonly name: string
  /** Name in Prometheus. */
  readonly prometheus: string
  /** `updown` adds up over processes, `gauge` does not. Events feed a histogram, and all other kinds are read. */
  readonly kind: 'counter' | 'updown' | 'gauge' | 'histogram'
  /** In the notation of UCUM. */
  readonly unit: string
  readonly description: string
  /**
   * Labels in Prometheus. Attributes of OpenTelemetry begin with `weir.`. A key is never a label, because each label may have only a few
   * values.
   */
  readonly labels: readonly ('policy' | 'reason' | 'source' | 'cause')[]
  /** The values at one moment. Undefined for histograms. */
  readonly read: ((snapshot: Snapshot) => readonly Reading[]) | undefined
}

type PolicySnapshot = Snapshot['policies'][number]

function perPolicy(read: (policy: PolicySnapshot) => number): (snapshot: Snapshot) => readonly Reading[] {
  return ({ policies }) => policies.map((policy) => ({ labels: { policy: policy.name }, value: read(policy) }))
}

function single(read: (snapshot: Snapshot) => number | undefined): (snapshot: Snapshot) => readonly Reading[] {
  return (snapshot) => {
    const value = read(snapshot)
    return value === undefined ? [] : [{ labels: {}, value }]
  }
}

function byCause(policy: string, counts: Readonly<Record<string, number>>, label: 'cause' | 'reason'): readonly Reading[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { policy, [label]: name }, value }))
}

const SECOND = 1_000

export const SYNC_DURATION: Metric = {
  name: 'weir.sync.duration',
  prometheus: 'weir_sync_duration_seconds',
  kind: 'histogram',
  unit: 's',
  description: 'Duration of the exchanges with the store that succeeded',
  labels: [],
  read: undefined,
}

export const SYNC_BATCH: Metric = {
  name: 'weir.sync.batch.size',
  prometheus: 'weir_sync_batch_keys',
  kind: 'histogram',
  unit: '{key}',
  description: 'Counts of keys in one exchange with the store; heartbeats carry none',
  labels: [],
  read: undefined,
}

export const WAIT_DURATION: Metric = {
  name: 'weir.wait.duration',
  prometheus: 'weir_wait_duration_seconds',
  kind: 'histogram',
  unit: 's',
  description: 'Time that requests waited which went then, with acquire or as they were held',
  labels: ['policy'],
  read: undefined,
}

/** Upper bounds of the buckets of `weir.wait.duration`, in seconds. */
export const WAIT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
/** Upper bounds of the buckets of `weir.sync.duration`, in seconds. */
export const DURATION_BUCKETS: readonly number[] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
/** Upper bounds of the buckets of `weir.sync.batch.size`, in keys. */
export const BATCH_BUCKETS: readonly number[] = [0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000]

/** All metrics. */
export const METRICS: readonly Metric[] = Object.freeze([
  {
    name: 'weir.allowed',
    prometheus: 'weir_allowed_units_total',
    kind: 'counter',
    unit: '{unit}',
    description: 'Cost units allowed by this node',
    labels: ['policy'],
    read: perPolicy(({ allowed }) => allowed),
  },
  {
    name: 'weir.rejected',
    prometheus: 'weir_rejected_requests_total',
    kind: 'counter',
    unit: '{request}',
    description: 'Requests rejected by this node, by reason and by the source of the knowledge that it rests on',
    labels: ['policy', 'reason', 'source'],
    read: ({ policies }) =>
      policies.flatMap(({ name, rejections }) =>
        rejections.map(({ reason, source, count }) => ({ labels: { policy: name, reason, source }, value: count })),
      ),
  },
  {
    name: 'weir.blocks',
    prometheus: 'weir_blocks_total',
    kind: 'counter',
    unit: '{block}',
    description: 'Blocks of keys that began, by exceeding the limit at this node, by hand at this node, or told by the store',
    labels: ['policy', 'cause'],
    read: ({ policies }) => policies.flatMap(({ name, blocks }) => byCause(name, blocks, 'cause')),
  },
  {
    name: 'weir.keys.blocked',
    prometheus: 'weir_blocked_keys',
    kind: 'gauge',
    unit: '{key}',
    description: 'Keys that are blocked, as this node knows them',
    labels: ['policy'],
    read: perPolicy(({ blocked }) => blocked),
  },
  {
    name: 'weir.keys.tracked',
    prometheus: 'weir_tracked_keys',
    kind: 'updown',
    unit: '{key}',
    description: 'Keys that this node holds',
    labels: ['policy'],
    read: perPolicy(({ keys }) => keys),
  },
  {
    name: 'weir.keys.max',
    prometheus: 'weir_max_keys',
    kind: 'updown',
    unit: '{key}',
    description: 'Keys that this node may hold',
    labels: ['policy'],
    read: perPolicy(({ maxKeys }) => maxKeys),
  },
  {
    name: 'weir.keys.overflowing',
    prometheus: 'weir_overflowing',
    kind: 'gauge',
    unit: '1',
    description: '1 while new keys find no room at this node',
    labels: ['policy'],
    read: perPolicy(({ overflowing }) => Number(overflowing)),
  },
  {
    name: 'weir.policy.limit',
    prometheus: 'weir_policy_limit_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'Cost units that a key may take in an interval',
    labels: ['policy'],
    read: perPolicy(({ limit }) => limit),
  },
  {
    name: 'weir.policy.capacity',
    prometheus: 'weir_policy_capacity_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'Cost units that a key may take at once after rest: the limit, or what a bucket holds',
    labels: ['policy'],
    read: perPolicy(({ capacity }) => capacity),
  },
  {
    name: 'weir.policy.interval',
    prometheus: 'weir_policy_interval_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Length of the interval; 0 where requests in flight are limited',
    labels: ['policy'],
    read: perPolicy(({ intervalMs: interval }) => interval / SECOND),
  },
  {
    name: 'weir.exchanges',
    prometheus: 'weir_exchanged_keys_total',
    kind: 'counter',
    unit: '{key}',
    description: 'Counts of keys sent to the store, by reason; all but span-end are early',
    labels: ['policy', 'reason'],
    read: ({ policies }) => policies.flatMap(({ name, exchanges }) => byCause(name, exchanges, 'reason')),
  },
  {
    name: 'weir.in_flight',
    prometheus: 'weir_in_flight_units',
    kind: 'updown',
    unit: '{unit}',
    description: 'Cost units of requests in flight at this node, where slots are limited',
    labels: ['policy'],
    read: perPolicy(({ inFlight }) => inFlight),
  },
  {
    name: 'weir.waiting',
    prometheus: 'weir_waiting_requests',
    kind: 'updown',
    unit: '{request}',
    description: 'Requests that wait at this node, with acquire or as they are held',
    labels: ['policy'],
    read: perPolicy(({ waiting }) => waiting),
  },
  {
    name: 'weir.waiting.longest',
    prometheus: 'weir_longest_wait_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Time for which the one of them has waited that came first',
    labels: ['policy'],
    read: perPolicy(({ longestWaitMs: longestWait }) => longestWait / SECOND),
  },
  WAIT_DURATION,
  {
    name: 'weir.wait.failures',
    prometheus: 'weir_wait_failures_total',
    kind: 'counter',
    unit: '{request}',
    description: 'Requests that were to wait and did not go, by reason',
    labels: ['reason'],
    read: ({ waitFailures }) => Object.entries(waitFailures).map(([reason, value]) => ({ labels: { reason }, value })),
  },
  {
    name: 'weir.unsynced.units',
    prometheus: 'weir_unsynced_units',
    kind: 'updown',
    unit: '{unit}',
    description: 'Cost units allowed by this node that the store does not know of yet',
    labels: ['policy'],
    read: perPolicy(({ unsynced }) => unsynced),
  },
  {
    name: 'weir.unsynced.age',
    prometheus: 'weir_unsynced_age_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Time for which the oldest of them may have been held back, those of quiet keys left out',
    labels: ['policy'],
    read: perPolicy(({ unsyncedAgeMs: unsyncedAge }) => unsyncedAge / SECOND),
  },
  {
    name: 'weir.leased.units',
    prometheus: 'weir_leased_units',
    kind: 'updown',
    unit: '{unit}',
    description: 'Cost units that this node holds ahead of requests, where quota is taken ahead',
    labels: ['policy'],
    read: perPolicy(({ leased: held }) => held),
  },
  {
    name: 'weir.overshoot',
    prometheus: 'weir_overshoot_ratio',
    kind: 'gauge',
    unit: '1',
    description: 'Estimate of what a key exceeds its limit by at most, as a part of the limit',
    labels: ['policy'],
    read: perPolicy(({ overshoot }) => overshoot),
  },
  {
    name: 'weir.debt',
    prometheus: 'weir_debt_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'Cost units beyond what a bucket holds, of the key that owes most; they are paid back',
    labels: ['policy'],
    read: perPolicy(({ debt }) => debt),
  },
  {
    name: 'weir.share',
    prometheus: 'weir_share_ratio',
    kind: 'gauge',
    unit: '1',
    description: "This node's part of the units of keys that were exchanged",
    labels: ['policy'],
    read: perPolicy(({ share }) => share),
  },
  {
    name: 'weir.nodes',
    prometheus: 'weir_nodes',
    kind: 'gauge',
    unit: '{node}',
    description: 'Live nodes as this node knows them',
    labels: [],
    read: single(({ nodes }) => nodes),
  },
  {
    name: 'weir.storeDown',
    prometheus: 'weir_store_down',
    kind: 'gauge',
    unit: '1',
    description: '1 while the store is away',
    labels: [],
    read: single(({ state }) => Number(state === 'storeDown')),
  },
  {
    name: 'weir.rules.version',
    prometheus: 'weir_rules_version',
    kind: 'gauge',
    unit: '1',
    description: 'Version of the rules that hold at this node; none where it follows no source, or policies of the code hold',
    labels: [],
    read: single(({ rules }) => rules?.version),
  },
  {
    name: 'weir.rules.rejected',
    prometheus: 'weir_rules_rejected',
    kind: 'gauge',
    unit: '1',
    description: '1 while the source holds rules that this node has rejected; none where it follows no source',
    labels: [],
    read: single(({ rules }) => (rules === undefined ? undefined : Number(rules.rejected !== undefined))),
  },
  {
    name: 'weir.rules.source_down',
    prometheus: 'weir_rules_source_down',
    kind: 'gauge',
    unit: '1',
    description: '1 while the source of the rules can not be read; none where it follows no source',
    labels: [],
    read: single(({ rules }) => (rules === undefined ? undefined : Number(rules.away !== undefined))),
  },
  {
    name: 'weir.sync.failures',
    prometheus: 'weir_sync_failures_total',
    kind: 'counter',
    unit: '{exchange}',
    description: 'Exchanges with the store that failed, by cause',
    labels: ['cause'],
    read: ({ sync }) => Object.entries(sync.failuresByCause).map(([cause, value]) => ({ labels: { cause }, value })),
  },
  {
    name: 'weir.sync.since_success',
    prometheus: 'weir_sync_since_success_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Time since the last exchange that succeeded; none before the first one',
    labels: [],
    read: single(({ sync }) => (sync.sinceSuccessMs === undefined ? undefined : sync.sinceSuccessMs / SECOND)),
  },
  SYNC_DURATION,
  SYNC_BATCH,
  {
    name: 'weir.clock.offset',
    prometheus: 'weir_clock_offset_seconds',
    kind: 'gauge',
    unit: 's',
    description: "The store's clock less this node's",
    labels: [],
    read: single(({ sync }) => sync.clockOffsetMs / SECOND),
  },
  {
    name: 'weir.clock.uncertainty',
    prometheus: 'weir_clock_uncertainty_seconds',
    kind: 'gauge',
    unit: 's',
    description: "By how much this node may misjudge the store's clock",
    labels: [],
    read: single(({ sync }) => sync.clockUncertaintyMs / SECOND),
  },
] satisfies Metric[])
