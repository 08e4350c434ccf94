import { WeirError } from '@weir/core'

/** Options of `redisStore` beside the connection. */
export interface RedisStoreOptions {
  /**
   * Begins the names of all Redis keys and of the channel, so that several applications can share a Redis. 1 to 100 letters, digits or any
   * of `_ . : / -`.
   *
   * @default 'weir'
   */
  readonly namespace?: string
  /**
   * Limits how long a sync waits for Redis before it counts as failed. Milliseconds, 10 to 60,000. Requests never wait for it. The default
   * is five times as long as a badly overloaded Redis takes, and detects a Redis that hangs within a second.
   *
   * @default 1000
   */
  readonly timeout?: number
  /**
   * Divides keys into this many groups (hash tags): a sync makes one call for each. All processes must use the same number. A whole number
   * from 1 to 1024.
   *
   * @default 1, or 16 with a Cluster: about five for each of three primaries
   * @see `@weir/core/docs/guides/production.md`
   */
  readonly shards?: number
  /**
   * Announces totals and blocks by publish/subscribe, so that all processes stop sooner at a limit. Without it limits are less accurate.
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

/** Checks what a user gave. @throws WEIR_INVALID_OPTION, WEIR_UNKNOWN_OPTION */
export function checkOptions(options: RedisStoreOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) throw invalidOption('storeOptions', options, 'an object')
  for (const name of Object.keys(options)) {
    if (KNOWN.includes(name)) continue
    throw new WeirError('WEIR_UNKNOWN_OPTION', `Option "${name}" of redisStore is unknown; known are ${KNOWN.join(', ')}.`)
  }
  const { namespace = 'weir', timeout = 1000, shards, publish = true } = options
  if (typeof namespace !== 'string' || !/^[\w.:/-]{1,100}$/.test(namespace)) {
    throw invalidOption('namespace', namespace, '1 to 100 letters, digits or any of _ . : / -')
  }
  if (typeof timeout !== 'number' || !(timeout >= 10 && timeout <= 60_000)) {
    throw invalidOption('timeout', timeout, 'a number of milliseconds from 10 to 60000')
  }
  if (shards !== undefined && !(Number.isInteger(shards) && shards >= 1 && shards <= 1024)) {
    throw invalidOption('shards', shards, 'a whole number from 1 to 1024')
  }
  if (typeof publish !== 'boolean') throw invalidOption('publish', publish, 'true or false')
  return { namespace, timeout, shards, publish }
}

/** An option of the store among the settings of a client, which would ignore it. @throws WEIR_UNKNOWN_OPTION */
export function checkPlaces(settings: object): void {
  const name = Object.keys(settings).find((own) => KNOWN.includes(own))
  if (name === undefined) return
  throw new WeirError('WEIR_UNKNOWN_OPTION', `Option "${name}" is not one of the client; write redisStore(client, { ${name}: ... }).`)
}

/** An option that can't be used: names it, what was given and what is allowed. */
export function invalidOption(option: string, given: unknown, allowed: string): WeirError {
  // A client or a URL may hold a password: of objects and texts only the kind is shown.
  const shown = typeof given === 'number' || typeof given === 'boolean' ? String(given) : given === null ? 'null' : typeof given
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${shown}; it must be ${allowed}.`)
}
