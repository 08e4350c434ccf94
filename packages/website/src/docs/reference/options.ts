import type { PublicOption } from './public-options.ts'
import type { Sources } from './sources.ts'
import { optionRow } from './tables.ts'

/** A table of options. */
export interface OptionTable {
  readonly page: string
  /** The package and the types that declare them. */
  readonly from: readonly string[]
  /** Only these, in this order. Otherwise all in the order of the declarations. */
  readonly only?: readonly string[]
}

const OPTIONS = 'docs/reference/options.md'
const POLICY = ['core PolicyOptions']
const ADAPTER = ['core AdapterOptions', 'core ThrottleInput']

/** By the name of its mark. */
export const OPTION_TABLES: Readonly<Record<string, OptionTable>> = {
  'options-limit': {
    page: OPTIONS,
    from: POLICY,
    only: ['limit', 'fallbackLimit', 'interval', 'algorithm', 'cost', 'maxReservation', 'cooldown', 'delay'],
  },
  'options-plans': { page: OPTIONS, from: ['core PlannedPolicyOptions'], only: ['plans', 'plan', 'interval'] },
  'options-requests': { page: OPTIONS, from: POLICY, only: ['key', 'match', 'name'] },
  'options-processes': { page: OPTIONS, from: POLICY, only: ['coordination', 'spans', 'failMode', 'storeTimeout'] },
  'options-trial': { page: OPTIONS, from: POLICY, only: ['dryRun', 'candidate'] },
  'options-fixed-window': { page: OPTIONS, from: ['core FixedWindowOptions'] },
  'options-calendar': { page: OPTIONS, from: ['core CalendarOptions'] },
  'options-sliding-window': { page: OPTIONS, from: ['core SlidingWindowOptions'] },
  'options-token-bucket': { page: OPTIONS, from: ['core TokenBucketOptions'] },
  'options-warm-up': { page: OPTIONS, from: ['core WarmUp'] },
  'options-leaky-bucket': { page: OPTIONS, from: ['core LeakyBucketOptions'] },
  'options-concurrency': { page: OPTIONS, from: ['core ConcurrencyOptions'] },
  'options-escalating': { page: OPTIONS, from: ['core EscalatingOptions'] },
  'options-throttler': { page: OPTIONS, from: ['core ThrottlerOptions'] },
  'options-queue': { page: OPTIONS, from: ['core QueueOptions'] },
  'options-snapshot': { page: OPTIONS, from: ['core SnapshotOptions'] },
  'options-adapter-requests': {
    page: OPTIONS,
    from: ADAPTER,
    only: ['throttler', 'enabled', 'skip', 'skipPreflight', 'allow', 'deny', 'dryRun'],
  },
  'options-adapter-response': {
    page: OPTIONS,
    from: ADAPTER,
    only: ['headers', 'sendRetryAfter', 'statusCode', 'message', 'handler', 'throwOnReject', 'onRejected'],
  },
  'options-adapter-refunds': {
    page: OPTIONS,
    from: ADAPTER,
    only: ['skipFailedRequests', 'skipSuccessfulRequests', 'requestWasSuccessful'],
  },
  'options-adapter-reservations': { page: OPTIONS, from: ADAPTER, only: ['estimate', 'settle', 'ttl'] },
  'options-adapter-keys': { page: OPTIONS, from: ADAPTER, only: ['ipv6Subnet', 'caseSensitive', 'callbackTimeout', 'afterFreeze'] },
  'options-fastify': { page: OPTIONS, from: ['fastify ThrottleOptions'] },
  'options-check': { page: 'docs/reference/throttler.md', from: ['core CheckOptions'] },
  'options-reserve': { page: 'docs/reference/throttler.md', from: ['core ReserveOptions', 'core ReservationOptions'] },
  'options-acquire': { page: 'docs/reference/throttler.md', from: ['core AcquireOptions'], only: ['timeout', 'signal', 'priority'] },
  'options-flush': { page: 'docs/reference/throttler.md', from: ['core FlushOptions'] },
  'options-koa': { page: OPTIONS, from: ['koa ThrottleOptions'] },
  'options-hono': { page: OPTIONS, from: ['hono ThrottleOptions'] },
  'options-web': { page: OPTIONS, from: ['web ThrottleOptions'] },
  'options-nestjs': { page: OPTIONS, from: ['nestjs ThrottleModuleExtras'] },
  'options-ipc': { page: OPTIONS, from: ['core IpcStoreOptions', 'core ServeIpcOptions'] },
  'options-redis': { page: OPTIONS, from: ['redis RedisStoreOptions'] },
  'options-express-rate-limit-store': { page: OPTIONS, from: ['compat ExpressRateLimitStoreOptions'] },
  'options-durable-object': { page: OPTIONS, from: ['workers DurableObjectStoreOptions'] },
  'options-postgres': { page: 'docs/guides/postgres.md', from: ['postgres PostgresStoreOptions'] },
  'options-dashboard': { page: 'docs/guides/dashboard.md', from: ['dashboard DashboardOptions'] },
  'options-etcd': { page: 'docs/guides/etcd.md', from: ['etcd EtcdStoreOptions'] },
}

/** The pages that explain the options of a package's type without a table. */
export const EXPLAINED: Readonly<Record<string, string>> = {
  'core SlotPolicyOptions': OPTIONS,
  'core PlanLimit': 'docs/guides/plans.md',
  'core HeaderKey': 'docs/guides/keys.md',
  'core AddressKey': 'docs/guides/keys.md',
  'core LearnedEstimateOptions': 'docs/guides/outgoing-calls.md',
  'core LimitedFetchOptions': 'docs/guides/outgoing-calls.md',
  'core AcquireOptions': 'docs/reference/throttler.md',
  'core WrapOptions': 'docs/reference/throttler.md',
  'core PolicyChoice': 'docs/reference/throttler.md',
  'core ActionOptions': 'docs/reference/throttler.md',
  'core AuditLogOptions': 'docs/reference/throttler.md',
  'core LimitedLineOptions': 'docs/guides/observability.md',
  'core UsageOptions': 'docs/reference/throttler.md',
  'core PlaceOptions': OPTIONS,
  'core ThrottleInput': OPTIONS,
  'core NamedFunctions': 'docs/guides/rules.md',
  'core CheckRulesOptions': 'docs/guides/rules.md',
  'core FollowOptions': 'docs/guides/rules.md',
  'core ParseOptions': 'docs/guides/rules.md',
  'core HttpRulesOptions': 'docs/guides/rules.md',
  'etcd EtcdRulesOptions': 'docs/guides/rules.md',
  'redis RedisRulesOptions': 'docs/guides/rules.md',
  'dashboard DashboardPluginOptions': 'docs/guides/dashboard.md',
  'etcd EtcdTarget': 'docs/guides/etcd.md',
  'etcd EtcdTls': 'docs/guides/etcd.md',
  'fastify NamedThrottleOptions': OPTIONS,
  'fastify RouteOptions': OPTIONS,
  'metrics OpenTelemetryOptions': 'packages/metrics/README.md',
  'metrics PrometheusOptions': 'packages/metrics/README.md',
  'nestjs ThrottleAsyncOptions': OPTIONS,
  'postgres SchemaOptions': 'docs/guides/postgres.md',
  'redis ClusterTarget': OPTIONS,
  'workers DurableObjectStoreOptions': 'packages/workers/README.md',
}

/** Packages and types whose options need no page: values that functions return, other libraries' settings, and tools for tests. */
export const UNEXPLAINED: readonly RegExp[] = [
  /^testing /,
  /^core EscalatingCooldown$/,
  /^dashboard PasswordAccess$/,
  /^postgres (ConnectionSettings|PoolTemplate)$/,
  /^redis NodeRedis/,
]

/** The rows of a table with its head. */
export function optionRows({ page, from, only }: OptionTable, options: readonly PublicOption[], sources: Sources): string[][] {
  const declared = from.flatMap((type) => options.filter((option) => typeOf(option) === type))
  const chosen = only === undefined ? declared : only.flatMap((name) => declared.find((option) => option.name === name) ?? [])
  return [['option', 'default', 'type', 'effect'], ...chosen.map((option) => optionRow(option, page, sources))]
}

/** The package and the declaring type of an option. */
export function typeOf({ file, declaredIn }: PublicOption): string {
  return `${file.split('/')[1]} ${declaredIn}`
}
