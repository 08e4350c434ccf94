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
  description: 'Duration of successful syncs with the store',
  labels: [],
  read: undefined,
}

export const SYNC_BATCH: Metric = {
  name: 'weir.sync.batch.size',
  prometheus: 'weir_sync_batch_keys',
  kind: 'histogram',
  unit: '{key}',
  description: 'Keys in one sync with the store. Heartbeats contain no keys',
  labels: [],
  read: undefined,
}

export const WAIT_DURATION: Metric = {
  name: 'weir.wait.duration',
  prometheus: 'weir_wait_duration_seconds',
  kind: 'histogram',
  unit: 's',
  description: 'Time that requests waited before they proceeded, with acquire or delay',
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
    description: 'Cost units that this process allowed',
    labels: ['policy'],
    read: perPolicy(({ allowed }) => allowed),
  },
  {
    name: 'weir.rejected',
    prometheus: 'weir_rejected_requests_total',
    kind: 'counter',
    unit: '{request}',
    description: 'Requests that this process rejected, by reason and by the source of the decision',
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
    description:
      'Blocks of keys that began: the key exceeded its limit at this process, was blocked manually at this process, or was blocked by another process',
    labels: ['policy', 'cause'],
    read: ({ policies }) => policies.flatMap(({ name, blocks }) => byCause(name, blocks, 'cause')),
  },
  {
    name: 'weir.keys.blocked',
    prometheus: 'weir_blocked_keys',
    kind: 'gauge',
    unit: '{key}',
    description: 'Keys that this process blocks now',
    labels: ['policy'],
    read: perPolicy(({ blocked }) => blocked),
  },
  {
    name: 'weir.keys.tracked',
    prometheus: 'weir_tracked_keys',
    kind: 'updown',
    unit: '{key}',
    description: 'Keys that this process counts',
    labels: ['policy'],
    read: perPolicy(({ keys }) => keys),
  },
  {
    name: 'weir.keys.max',
    prometheus: 'weir_max_keys',
    kind: 'updown',
    unit: '{key}',
    description: 'Keys that this process counts at most',
    labels: ['policy'],
    read: perPolicy(({ maxKeys }) => maxKeys),
  },
  {
    name: 'weir.keys.overflowing',
    prometheus: 'weir_overflowing',
    kind: 'gauge',
    unit: '1',
    description: '1 while the table of keys of this process is full',
    labels: ['policy'],
    read: perPolicy(({ overflowing }) => Number(overflowing)),
  },
  {
    name: 'weir.policy.limit',
    prometheus: 'weir_policy_limit_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'Cost units that a key may use in an interval',
    labels: ['policy'],
    read: perPolicy(({ limit }) => limit),
  },
  {
    name: 'weir.policy.capacity',
    prometheus: 'weir_policy_capacity_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'Cost units that an unused key may use at once: the limit, or the capacity of a bucket',
    labels: ['policy'],
    read: perPolicy(({ capacity }) => capacity),
  },
  {
    name: 'weir.policy.interval',
    prometheus: 'weir_policy_interval_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Length of the interval. 0 if requests in flight are limited',
    labels: ['policy'],
    read: perPolicy(({ intervalMs: interval }) => interval / SECOND),
  },
  {
    name: 'weir.exchanges',
    prometheus: 'weir_exchanged_keys_total',
    kind: 'counter',
    unit: '{key}',
    description: 'Key writes to the store, by reason. All but span-end are early',
    labels: ['policy', 'reason'],
    read: ({ policies }) => policies.flatMap(({ name, exchanges }) => byCause(name, exchanges, 'reason')),
  },
  {
    name: 'weir.in_flight',
    prometheus: 'weir_in_flight_units',
    kind: 'updown',
    unit: '{unit}',
    description: 'Cost units of requests in flight at this process, if slots are limited',
    labels: ['policy'],
    read: perPolicy(({ inFlight }) => inFlight),
  },
  {
    name: 'weir.waiting',
    prometheus: 'weir_waiting_requests',
    kind: 'updown',
    unit: '{request}',
    description: 'Requests that wait at this process, with acquire or delay',
    labels: ['policy'],
    read: perPolicy(({ waiting }) => waiting),
  },
  {
    name: 'weir.waiting.longest',
    prometheus: 'weir_longest_wait_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Time that the first waiting request has waited',
    labels: ['policy'],
    read: perPolicy(({ longestWaitMs: longestWait }) => longestWait / SECOND),
  },
  WAIT_DURATION,
  {
    name: 'weir.wait.failures',
    prometheus: 'weir_wait_failures_total',
    kind: 'counter',
    unit: '{request}',
    description: 'Requests that did not proceed after waiting, by reason',
    labels: ['reason'],
    read: ({ waitFailures }) => Object.entries(waitFailures).map(([reason, value]) => ({ labels: { reason }, value })),
  },
  {
    name: 'weir.unsynced.units',
    prometheus: 'weir_unsynced_units',
    kind: 'updown',
    unit: '{unit}',
    description: 'Cost units that this process allowed and has not reported to the store yet',
    labels: ['policy'],
    read: perPolicy(({ unsynced }) => unsynced),
  },
  {
    name: 'weir.unsynced.age',
    prometheus: 'weir_unsynced_age_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Age of the oldest unreported unit, without keys far below their limit',
    labels: ['policy'],
    read: perPolicy(({ unsyncedAgeMs: unsyncedAge }) => unsyncedAge / SECOND),
  },
  {
    name: 'weir.leased.units',
    prometheus: 'weir_leased_units',
    kind: 'updown',
    unit: '{unit}',
    description: 'Cost units that this process has taken ahead of requests, with leases',
    labels: ['policy'],
    read: perPolicy(({ leased }) => leased),
  },
  {
    name: 'weir.overshoot',
    prometheus: 'weir_overshoot_ratio',
    kind: 'gauge',
    unit: '1',
    description: 'Estimate of the overshoot of the worst key, as a part of the limit',
    labels: ['policy'],
    read: perPolicy(({ overshoot }) => overshoot),
  },
  {
    name: 'weir.debt',
    prometheus: 'weir_debt_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'Cost units above the capacity of a bucket, for the key that owes most',
    labels: ['policy'],
    read: perPolicy(({ debt }) => debt),
  },
  {
    name: 'weir.share',
    prometheus: 'weir_share_ratio',
    kind: 'gauge',
    unit: '1',
    description: "This process's part of the units of synced keys",
    labels: ['policy'],
    read: perPolicy(({ share }) => share),
  },
  {
    name: 'weir.nodes',
    prometheus: 'weir_nodes',
    kind: 'gauge',
    unit: '{node}',
    description: 'Live processes that this process sees',
    labels: [],
    read: single(({ nodes }) => nodes),
  },
  {
    name: 'weir.storeDown',
    prometheus: 'weir_store_down',
    kind: 'gauge',
    unit: '1',
    description: '1 while the store is down',
    labels: [],
    read: single(({ state }) => Number(state === 'storeDown')),
  },
  {
    name: 'weir.rules.version',
    prometheus: 'weir_rules_version',
    kind: 'gauge',
    unit: '1',
    description: 'Version of the rules in use. No value if the process follows no source, or uses the policies in its code',
    labels: [],
    read: single(({ rules }) => rules?.version),
  },
  {
    name: 'weir.rules.rejected',
    prometheus: 'weir_rules_rejected',
    kind: 'gauge',
    unit: '1',
    description: '1 while the source contains rules that this process rejected. No value if the process follows no source',
    labels: [],
    read: single(({ rules }) => (rules === undefined ? undefined : Number(rules.rejected !== undefined))),
  },
  {
    name: 'weir.rules.source_down',
    prometheus: 'weir_rules_source_down',
    kind: 'gauge',
    unit: '1',
    description: '1 while the source of the rules can not be read. No value if the process follows no source',
    labels: [],
    read: single(({ rules }) => (rules === undefined ? undefined : Number(rules.away !== undefined))),
  },
  {
    name: 'weir.sync.failures',
    prometheus: 'weir_sync_failures_total',
    kind: 'counter',
    unit: '{exchange}',
    description: 'Failed syncs with the store, by cause',
    labels: ['cause'],
    read: ({ sync }) => Object.entries(sync.failuresByCause).map(([cause, value]) => ({ labels: { cause }, value })),
  },
  {
    name: 'weir.sync.since_success',
    prometheus: 'weir_sync_since_success_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Time since the last successful sync. No value before the first one',
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
    description: "The store's clock minus this process's",
    labels: [],
    read: single(({ sync }) => sync.clockOffsetMs / SECOND),
  },
  {
    name: 'weir.clock.uncertainty',
    prometheus: 'weir_clock_uncertainty_seconds',
    kind: 'gauge',
    unit: 's',
    description: "Error by which this process may misjudge the store's clock",
    labels: [],
    read: single(({ sync }) => sync.clockUncertaintyMs / SECOND),
  },
] satisfies Metric[])
