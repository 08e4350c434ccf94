import { isPolicyOption } from '../decide/check-policy.ts'
import type { Overflow } from '../decide/limiter.ts'
import type { PlannedPolicyOptions } from '../decide/plans.ts'
import type { AnyPolicyOptions } from '../decide/policy.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { oneOf } from '../options/one-of.ts'
import { type QueueOptions, type QueueSettings, queueSettings } from '../queue/settings.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import { checkLogger, type Logger } from '../report/logger.ts'
import { checkNames } from '../report/names.ts'
import { kindOf } from '../report/show.ts'
import { LONGEST_TIMER } from '../time/alarm.ts'
import type { Clock } from '../time/clock.ts'
import type { Store } from './coordinator.ts'

/** Options of `createThrottler`. An invalid value throws `WEIR_INVALID_OPTION`, an unknown name `WEIR_UNKNOWN_OPTION`. */
export interface ThrottlerOptions<Req = unknown, Name extends string = string> {
  /**
   * Lists the rules, at least one. A request counts only if all policies that apply allow it.
   *
   * Throws `WEIR_MISSING_OPTION` without it, and `WEIR_DUPLICATE_POLICY` if two have the same name.
   *
   * @see `@weir/core/docs/reference/options.md#policy`
   */
  readonly policies: readonly (AnyPolicyOptions<Req, Name> | PlannedPolicyOptions<Req, Name>)[]
  /**
   * Shares limits with other processes. Without one, this process counts alone, with one warning unless each policy has `coordination:
   * 'local'`.
   *
   * `redisStore(…)`, `postgresStore(…)`, `etcdStore(…)`, `ipcStore()` for the processes of one machine, or `memoryStore()` for the
   * throttlers of one process.
   *
   * @default none: this process counts alone
   * @see `@weir/core/docs/reference/options.md#stores`
   */
  readonly store?: Store
  /**
   * Replaces time and timers in tests: `manualClock()` of `@weir/testing`.
   *
   * @default the clock and timers of this process
   */
  readonly clock?: Clock
  /**
   * Replaces random numbers, from 0 to less than 1. Processes with one store need different ones, because their ids come from it.
   *
   * @default Math.random
   */
  readonly random?: () => number
  /**
   * Limits the number of keys that each policy stores: at least 1. Manual blocks may add as many again.
   *
   * A key needs about 100 bytes, or up to a few kilobytes with algorithms that store more.
   *
   * @default 250_000
   */
  readonly maxKeys?: number
  /**
   * Decides requests with a new key if `maxKeys` is reached: they share one count, are allowed uncounted, or are rejected.
   *
   * - `'shared'`: all new keys share one count of the policy.
   * - `'allow'`: they are allowed and not counted.
   * - `'reject'`: they are rejected.
   *
   * @default 'shared'
   */
  readonly overflow?: Overflow
  /**
   * Sets how many processes you run: at least 1. Until the store has answered once, a process allows `max(1, limit / expectedProcesses)`
   * per key.
   *
   * A process that starts while the store is down has no information about the others, so without this option it would allow the whole
   * limit. Ignored with `failMode: 'open'` while the store is known to be down, with coordination `'local'`, and without a `store`.
   *
   * @default 1
   * @see `@weir/core/docs/guides/production.md`
   */
  readonly expectedProcesses?: number
  /**
   * Sets how often the process reports to the store that it is alive: 100 ms to 10 s. Throttlers share syncs only if it is the same.
   *
   * A shorter one detects sooner that a process has left or that the store has lost its data, but needs more round trips. Ignored without a
   * `store`.
   *
   * @default '1s'
   */
  readonly heartbeat?: Duration
  /**
   * Limits how long `close()` waits for queued requests, and then again for the last sync: at most 24 days.
   *
   * It applies even if the store is down.
   *
   * @default '1s'
   * @see `@weir/core/docs/recipes/shutdown.md`
   */
  readonly closeTimeout?: Duration
  /**
   * Limits how many requests wait with `acquire` or `delay`, and for how long.
   *
   * @default { maxWaiting: 10_000, maxWaitingPerKey: 1_000, maxWait: '30s', onClose: 'finish' }
   * @see `@weir/core/docs/reference/options.md#queue`
   */
  readonly queue?: QueueOptions
  /**
   * Receives state changes, never single requests: the logger of pino, Fastify or NestJS, `console`, or `{ error, warn }`.
   *
   * State changes are: store down, store back, a full table of keys, and warnings.
   *
   * @default none: nothing is logged
   * @see `@weir/core/docs/guides/observability.md`
   */
  readonly logger?: Logger
}

/** The names of a throttler's options. */
export const THROTTLER_OPTIONS: readonly string[] = [
  'policies',
  'store',
  'clock',
  'random',
  'maxKeys',
  'overflow',
  'expectedProcesses',
  'heartbeat',
  'closeTimeout',
  'queue',
  'logger',
] satisfies (keyof ThrottlerOptions)[]

/** The options of a throttler itself, checked. Times in milliseconds. */
export interface ThrottlerSettings {
  readonly maxKeys: number
  readonly overflow: Overflow
  readonly expectedProcesses: number
  readonly heartbeat: number
  readonly closeTimeout: number
  readonly queue: QueueSettings
}

/** @throws WeirError for options that can't be used, naming the option */
export function throttlerSettings(options: ThrottlerOptions<never>): ThrottlerSettings {
  checkOptions(options)
  const { maxKeys = 250_000, expectedProcesses = 1 } = options
  if (!Number.isInteger(maxKeys) || maxKeys < 1) throw invalidOption('maxKeys', maxKeys, 'a whole number of at least 1')
  if (!Number.isInteger(expectedProcesses) || expectedProcesses < 1)
    throw invalidOption('expectedProcesses', expectedProcesses, 'a whole number of at least 1')
  const overflow = oneOf<Overflow>('overflow', options.overflow, ['shared', 'allow', 'reject'])
  const heartbeat = parseDuration(options.heartbeat === undefined ? 1_000 : options.heartbeat, 'heartbeat', 100, 10_000)
  const closeTimeout = parseDuration(options.closeTimeout === undefined ? 1_000 : options.closeTimeout, 'closeTimeout', 0, LONGEST_TIMER)
  return { maxKeys, overflow, expectedProcesses, heartbeat, closeTimeout, queue: queueSettings(options.queue) }
}

function checkOptions(options: object): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('options', options, 'an object such as { policies: [{ limit: 100, interval: "1m" }] }')
  }
  checkNames('A throttler', options, THROTTLER_OPTIONS, (option) =>
    isPolicyOption(option) ? 'It is an option of a policy: move it into "policies".' : undefined,
  )
  const { store, clock, random, logger } = options as ThrottlerOptions
  checkLogger(logger)
  if (store !== undefined && (typeof store?.open !== 'function' || typeof store.coordinate !== 'function')) {
    throw new WeirError('WEIR_INVALID_OPTION', `Option "store" is ${storeHint(store)}`)
  }
  const methods = ['now', 'monotonic', 'setTimeout', 'clearTimeout', 'defer'] as const
  if (clock !== undefined && methods.some((method) => typeof clock?.[method] !== 'function')) {
    throw invalidOption('clock', clock, `a Clock, an object with the functions ${methods.join(', ')}`)
  }
  if (random !== undefined && typeof random !== 'function')
    throw invalidOption('random', random, 'a function that returns numbers from 0 to less than 1, such as Math.random')
}

/** Describes a value that is no store, and the next step. A client or a URL may contain a password, so they are not shown. */
function storeHint(given: unknown): string {
  if (typeof given === 'function') return `${show(given)}. If it makes a store, call it, as in store: memoryStore().`
  if (typeof given === 'string') return 'a string. Use store: redisStore("redis://localhost:6379"), imported from "@weir/redis".'
  if (typeof given === 'object' && given !== null) {
    const has = (...names: string[]) => names.every((name) => name in given)
    const [client, made, from] = has('duplicate', 'isReady')
      ? ['a client of node-redis', 'redisStore(client)', '@weir/redis/node-redis']
      : has('duplicate', 'status')
        ? ['a client of ioredis', 'redisStore(client)', '@weir/redis']
        : has('query', 'connect')
          ? ['a client of pg', 'postgresStore(pool)', '@weir/postgres']
          : []
    if (client !== undefined) return `${client}. Use store: ${made}, imported from "${from}".`
  }
  return `${kindOf(given)}. Use a store such as memoryStore(), ipcStore() or redisStore(...), or make your own with backgroundStore(...).`
}
