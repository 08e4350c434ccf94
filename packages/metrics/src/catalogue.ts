import type { SourceSnapshot } from './source.ts'

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
  readonly labels: readonly ('policy' | 'mode' | 'result' | 'reason' | 'source' | 'cause' | 'outcome')[]
  /** The values at one moment. Undefined for histograms. */
  readonly read: ((snapshot: SourceSnapshot) => readonly Reading[]) | undefined
}

type PolicySnapshot = SourceSnapshot['policies'][number]

function perPolicy(read: (policy: PolicySnapshot) => number): (snapshot: SourceSnapshot) => readonly Reading[] {
  return ({ policies }) => policies.map((policy) => ({ labels: labelsOf(policy), value: read(policy) }))
}

function labelsOf({ name, mode }: PolicySnapshot): { readonly policy: string; readonly mode: string } {
  return { policy: name, mode }
}

function single(read: (snapshot: SourceSnapshot) => number | undefined): (snapshot: SourceSnapshot) => readonly Reading[] {
  return (snapshot) => {
    const value = read(snapshot)
    return value === undefined ? [] : [{ labels: {}, value }]
  }
}

function byCause(
  policy: PolicySnapshot,
  counts: Readonly<Record<string, number>>,
  label: 'cause' | 'reason' | 'outcome',
): readonly Reading[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { ...labelsOf(policy), [label]: name }, value }))
}

const SECOND = 1_000

export const SYNC_DURATION: Metric = {
  name: 'weir.sync.duration',
  prometheus: 'weir_sync_duration_seconds',
  kind: 'histogram',
  unit: 's',
  description: 'Duration of successful syncs. Above 10 ms accuracy suffers.',
  labels: [],
  read: undefined,
}

export const SYNC_BATCH: Metric = {
  name: 'weir.sync.batch.size',
  prometheus: 'weir_sync_batch_keys',
  kind: 'histogram',
  unit: '{key}',
  description: 'Keys per sync, at most 200. Many full batches mean a backlog.',
  labels: [],
  read: undefined,
}

export const WAIT_DURATION: Metric = {
  name: 'weir.wait.duration',
  prometheus: 'weir_wait_duration_seconds',
  kind: 'histogram',
  unit: 's',
  description: 'Waits of requests that proceeded.',
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
    name: 'weir.requests',
    prometheus: 'weir_requests_total',
    kind: 'counter',
    unit: '{request}',
    description:
      'Requests as clients see them, by `result`: `allowed` or `rejected`. A request counts once, even with several policies or a cost. Rejections by a `deny` list and unsuccessful waits are included.',
    labels: ['result'],
    read: ({ requests: { allowed, rejected } }) => [
      { labels: { result: 'allowed' }, value: allowed },
      { labels: { result: 'rejected' }, value: rejected },
    ],
  },
  {
    name: 'weir.allowed',
    prometheus: 'weir_allowed_units_total',
    kind: 'counter',
    unit: '{unit}',
    description: 'Units that this process allowed. Each policy counts its own, so for the traffic use `weir_requests_total`.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ allowed }) => allowed),
  },
  {
    name: 'weir.rejected',
    prometheus: 'weir_rejected_requests_total',
    kind: 'counter',
    unit: '{request}',
    description:
      'Requests that the policy rejected, or would have rejected if `mode` is `dry-run` or `candidate`. Rejections by a `deny` list are not included. If `limit` rises suddenly, check the keys: an attack, a client that retries without end, or a limit that is too small.',
    labels: ['policy', 'mode', 'reason', 'source'],
    read: ({ policies }) =>
      policies.flatMap((policy) =>
        policy.rejections.map(({ reason, source, count }) => ({ labels: { ...labelsOf(policy), reason, source }, value: count })),
      ),
  },
  {
    name: 'weir.blocks',
    prometheus: 'weir_blocks_total',
    kind: 'counter',
    unit: '{block}',
    description: 'Blocks that began. A block that another process began counts as `remote`.',
    labels: ['policy', 'mode', 'cause'],
    read: ({ policies }) => policies.flatMap((policy) => byCause(policy, policy.blocks, 'cause')),
  },
  {
    name: 'weir.keys.blocked',
    prometheus: 'weir_blocked_keys',
    kind: 'gauge',
    unit: '{key}',
    description: 'Keys that are blocked now. All processes have the same blocks, so use the maximum, not the sum.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ blocked }) => blocked),
  },
  {
    name: 'weir.keys.tracked',
    prometheus: 'weir_tracked_keys',
    kind: 'updown',
    unit: '{key}',
    description: 'Keys in memory. Above 80 % of `weir_max_keys`: raise `maxKeys`, or look for a key that clients can invent.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ keys }) => keys),
  },
  {
    name: 'weir.keys.max',
    prometheus: 'weir_max_keys',
    kind: 'updown',
    unit: '{key}',
    description: 'The option `maxKeys`.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ maxKeys }) => maxKeys),
  },
  {
    name: 'weir.keys.overflowing',
    prometheus: 'weir_overflowing',
    kind: 'gauge',
    unit: '1',
    description: '1 while new keys find no space. The option `overflow` decides them.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ overflowing }) => Number(overflowing)),
  },
  {
    name: 'weir.policy.limit',
    prometheus: 'weir_policy_limit_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'The limit. If processes differ, a rollout is in progress or a process was forgotten.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ limit }) => limit),
  },
  {
    name: 'weir.policy.capacity',
    prometheus: 'weir_policy_capacity_units',
    kind: 'gauge',
    unit: '{unit}',
    description: "Units that an unused key may use at once: the limit, or a bucket's `burst`.",
    labels: ['policy', 'mode'],
    read: perPolicy(({ capacity }) => capacity),
  },
  {
    name: 'weir.policy.interval',
    prometheus: 'weir_policy_interval_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'The interval, 0 with `concurrency()`.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ intervalMs: interval }) => interval / SECOND),
  },
  {
    name: 'weir.exchanges',
    prometheus: 'weir_exchanged_keys_total',
    kind: 'counter',
    unit: '{key}',
    description: 'Key writes, by reason.',
    labels: ['policy', 'mode', 'reason'],
    read: ({ policies }) => policies.flatMap((policy) => byCause(policy, policy.exchanges, 'reason')),
  },
  {
    name: 'weir.in_flight',
    prometheus: 'weir_in_flight_units',
    kind: 'updown',
    unit: '{unit}',
    description: "`concurrency()`: units of requests in flight. If it doesn't fall to 0 without traffic, slots aren't released.",
    labels: ['policy', 'mode'],
    read: perPolicy(({ inFlight }) => inFlight),
  },
  {
    name: 'weir.reservations.open',
    prometheus: 'weir_open_reservations',
    kind: 'updown',
    unit: '{reservation}',
    description: "Open reservations of this process (`reserve`). If it doesn't fall to 0 without traffic, your code doesn't settle them.",
    labels: ['policy', 'mode'],
    read: perPolicy(({ reservations }) => reservations.open),
  },
  {
    name: 'weir.reserved.units',
    prometheus: 'weir_reserved_units',
    kind: 'updown',
    unit: '{unit}',
    description: 'Units of open reservations. When they are settled, unused units return.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ reservations }) => reservations.units),
  },
  {
    name: 'weir.reservations',
    prometheus: 'weir_reservations_total',
    kind: 'counter',
    unit: '{reservation}',
    description:
      "Reservations that ended, by `outcome`: `settled`, `cancelled` or `expired`. If many expire, calls take longer than `ttl`, or your code doesn't settle them.",
    labels: ['policy', 'mode', 'outcome'],
    read: ({ policies }) =>
      policies.flatMap((policy) => {
        const { settled, cancelled, expired } = policy.reservations
        return byCause(policy, { settled, cancelled, expired }, 'outcome')
      }),
  },
  {
    name: 'weir.waiting',
    prometheus: 'weir_waiting_requests',
    kind: 'updown',
    unit: '{request}',
    description: 'Requests that wait now, with `acquire` or `delay`. If it only grows, you get more requests than the limit allows.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ waiting }) => waiting),
  },
  {
    name: 'weir.waiting.longest',
    prometheus: 'weir_longest_wait_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'How long the first waiting request has waited.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ longestWaitMs: longestWait }) => longestWait / SECOND),
  },
  WAIT_DURATION,
  {
    name: 'weir.wait.failures',
    prometheus: 'weir_wait_failures_total',
    kind: 'counter',
    unit: '{request}',
    description: 'Requests that gave up waiting. `timeout` and `queue-full`: too many requests for the limit. `aborted`: the client left.',
    labels: ['reason'],
    read: ({ waitFailures }) => Object.entries(waitFailures).map(([reason, value]) => ({ labels: { reason }, value })),
  },
  {
    name: 'weir.unsynced.units',
    prometheus: 'weir_unsynced_units',
    kind: 'updown',
    unit: '{unit}',
    description:
      "Allowed units that the store doesn't have yet. Units of keys far below their limit stay here on purpose. If it grows without traffic, syncs fail.",
    labels: ['policy', 'mode'],
    read: perPolicy(({ unsynced }) => unsynced),
  },
  {
    name: 'weir.unsynced.age',
    prometheus: 'weir_unsynced_age_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Age of the oldest unsynced units, without keys far below their limit. Above a span: syncs fail or are too slow.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ unsyncedAgeMs: unsyncedAge }) => unsyncedAge / SECOND),
  },
  {
    name: 'weir.leased.units',
    prometheus: 'weir_leased_units',
    kind: 'updown',
    unit: '{unit}',
    description: "With `coordination: 'leased'`: quota that this process has taken ahead. It falls to 0 when the limit is nearly used up.",
    labels: ['policy', 'mode'],
    read: perPolicy(({ leased: held }) => held),
  },
  {
    name: 'weir.overshoot',
    prometheus: 'weir_overshoot_ratio',
    kind: 'gauge',
    unit: '1',
    description:
      'Measured in the last hour: how far the worst key was above its limit, as a part of the limit. Above 0.1: check the duration of syncs. Charged units count.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ measuredOvershoot }) => measuredOvershoot),
  },
  {
    name: 'weir.possible.overshoot',
    prometheus: 'weir_possible_overshoot_ratio',
    kind: 'gauge',
    unit: '1',
    description:
      'Estimate: how far a key may be above its limit now, as a part of the limit, if all processes have as many unsynced units as this one.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ overshoot }) => overshoot),
  },
  {
    name: 'weir.debt',
    prometheus: 'weir_debt_units',
    kind: 'gauge',
    unit: '{unit}',
    description: 'Buckets: units above capacity of the key that owes most. The key is rejected until they are paid back.',
    labels: ['policy', 'mode'],
    read: perPolicy(({ debt }) => debt),
  },
  {
    name: 'weir.share',
    prometheus: 'weir_share_ratio',
    kind: 'gauge',
    unit: '1',
    description: "This process's part of the traffic of synced keys. It shows how evenly your balancer spreads requests.",
    labels: ['policy', 'mode'],
    read: perPolicy(({ share }) => share),
  },
  {
    name: 'weir.nodes',
    prometheus: 'weir_nodes',
    kind: 'gauge',
    unit: '{node}',
    description: "Live processes. If it differs from your number, some can't reach the store or use another namespace.",
    labels: [],
    read: single(({ nodes }) => nodes),
  },
  {
    name: 'weir.storeDown',
    prometheus: 'weir_store_down',
    kind: 'gauge',
    unit: '1',
    description: '1 while the store is down. Repair the store: processes reconnect by themselves within a second.',
    labels: [],
    read: single(({ state }) => Number(state === 'storeDown')),
  },
  {
    name: 'weir.rules.version',
    prometheus: 'weir_rules_version',
    kind: 'gauge',
    unit: '1',
    description: 'Version of the rules in use. Alert if processes differ for more than a minute.',
    labels: [],
    read: single(({ rules }) => rules?.version),
  },
  {
    name: 'weir.rules.rejected',
    prometheus: 'weir_rules_rejected',
    kind: 'gauge',
    unit: '1',
    description: '1 while the source contains rules that this process rejected.',
    labels: [],
    read: single(({ rules }) => (rules === undefined ? undefined : Number(rules.rejected !== undefined))),
  },
  {
    name: 'weir.rules.source_down',
    prometheus: 'weir_rules_source_down',
    kind: 'gauge',
    unit: '1',
    description: "1 while the source of the rules can't be read.",
    labels: [],
    read: single(({ rules }) => (rules === undefined ? undefined : Number(rules.away !== undefined))),
  },
  {
    name: 'weir.sync.failures',
    prometheus: 'weir_sync_failures_total',
    kind: 'counter',
    unit: '{exchange}',
    description:
      "Failed syncs. `timeout`: the store is slow or hangs. `unavailable`: no connection. `rejected`: it returns an error (memory, read-only, permissions). `reply`: its reply can't be read.",
    labels: ['cause'],
    read: ({ sync }) => Object.entries(sync.failuresByCause).map(([cause, value]) => ({ labels: { cause }, value })),
  },
  {
    name: 'weir.sync.since_success',
    prometheus: 'weir_sync_since_success_seconds',
    kind: 'gauge',
    unit: 's',
    description: 'Time since the last successful sync. Above two heartbeats: see `weir_sync_failures_total`.',
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
    description: "The store's clock minus this process's. Limits follow the store's clock, but one of the two is wrong.",
    labels: [],
    read: single(({ sync }) => sync.clockOffsetMs / SECOND),
  },
  {
    name: 'weir.clock.uncertainty',
    prometheus: 'weir_clock_uncertainty_seconds',
    kind: 'gauge',
    unit: 's',
    description: "How far this process may misjudge the store's clock.",
    labels: [],
    read: single(({ sync }) => sync.clockUncertaintyMs / SECOND),
  },
] satisfies Metric[])
