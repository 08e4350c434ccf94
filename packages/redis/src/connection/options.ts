import { type Duration, parseDuration, WeirError } from '@weir/core'
import { checkOptions as checkNames, invalidOption, kindOf } from '@weir/core/sync'

/** Options of `redisStore`, after the connection. An invalid value throws `WEIR_INVALID_OPTION`, an unknown name `WEIR_UNKNOWN_OPTION`. */
export interface RedisStoreOptions {
  /**
   * Begins the names of all keys and of the channel: 1 to 100 letters, digits or any of `_ . : / -`.
   *
   * So several applications can share a Redis. Processes with different namespaces share no counts.
   *
   * @default 'weir'
   */
  readonly namespace?: string
  /**
   * Limits how long a sync waits for Redis before it counts as failed: 10 ms to 60 s.
   *
   * Requests wait for Redis only with coordination `'central'` and `'leased'`, at most for `storeTimeout`. A shorter timeout detects
   * outages sooner, but if Redis or this process is overloaded, a healthy reply may count as missing.
   *
   * @default 1000
   */
  readonly timeout?: Duration
  /**
   * Divides keys into 1 to 1024 groups (hash tags). All processes must use the same number.
   *
   * So a Cluster can distribute them. A sync makes one call for each group. With a Cluster of three primaries, the default is about five
   * for each.
   *
   * @default 1, or 16 with a Cluster
   */
  readonly shards?: number
  /**
   * Announces totals and blocks. Without it limits are less accurate.
   *
   * Announcements use publish/subscribe. With them, all processes stop sooner at a limit.
   *
   * @default true
   */
  readonly publish?: boolean
}

export interface CheckedOptions {
  readonly namespace: string
  readonly timeout: number
  readonly shards: number | undefined
  readonly publish: boolean
}

const KNOWN = ['namespace', 'timeout', 'shards', 'publish']

/** Checks the user's options. @throws WEIR_INVALID_OPTION, WEIR_UNKNOWN_OPTION */
export function checkOptions(options: RedisStoreOptions, of = 'redisStore', known: readonly string[] = KNOWN): CheckedOptions {
  checkNames(of, options, known, 'an object such as { namespace: "app" } as second argument')
  const { namespace = 'weir', shards, publish = true } = options
  const timeout = parseDuration(options.timeout ?? 1000, 'timeout', 10, 60_000)
  if (typeof namespace !== 'string' || !/^[\w.:/-]{1,100}$/.test(namespace)) {
    throw invalidOption('namespace', namespace, '1 to 100 letters, digits or any of _ . : / -')
  }
  if (shards !== undefined && !(Number.isInteger(shards) && shards >= 1 && shards <= 1024)) {
    throw invalidOption('shards', shards, 'a whole number from 1 to 1024')
  }
  if (typeof publish !== 'boolean') throw invalidOption('publish', publish, 'true or false')
  return { namespace, timeout, shards, publish }
}

/** Checks for options of the store among the settings of a client, which would ignore them. @throws WEIR_UNKNOWN_OPTION */
export function checkPlaces(settings: object): void {
  const name = Object.keys(settings).find((own) => KNOWN.includes(own))
  if (name === undefined) return
  throw new WeirError(
    'WEIR_UNKNOWN_OPTION',
    `Option "${name}" is an option of the store, not of the client. Use redisStore(client, { ${name}: … }).`,
  )
}

/** The error for a target that is no address. A client or a URL may contain a password, so only its kind is shown. */
export function invalidTarget(given: unknown, allowed: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `redisStore(): the first argument is ${kindOf(given)}. Use ${allowed}.`)
}
