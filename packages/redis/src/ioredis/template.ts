import { WeirError } from '@weir/core'
import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis'
import { checkPlaces, invalidTarget } from '../connection/options.ts'
import type { ScriptRunner } from '../scripts/script.ts'
import { Cluster, Redis } from './npm-install-ioredis.ts'
import type { GuardedClient, GuardedStream } from './stream-guard.ts'

/** An instance of ioredis 5 or 6: a `Redis` (one server, or Sentinels) or a `Cluster`. */
export interface IoredisInstance {
  readonly status: string
  readonly options: object
  duplicate(...args: never[]): unknown
}

/** The startup nodes of a Cluster, and ioredis's options for it. */
export interface ClusterTarget {
  /** Lists the nodes of the Cluster to connect to first, at least one. */
  readonly cluster: ClusterNode[]
  /**
   * Sets options of ioredis for the Cluster.
   *
   * @default none
   */
  readonly options?: ClusterOptions
}

/** The target of `redisStore`: an ioredis instance as a template, a URL, options of ioredis, or a Cluster. */
export type RedisTarget = IoredisInstance | RedisOptions | ClusterTarget | string

/** The parts of the store's own ioredis client that are used. */
export interface Client extends ScriptRunner, GuardedClient {
  readonly status: string
  readonly stream?:
    | (GuardedStream & {
        readonly bytesRead?: number
        readonly connecting?: boolean
        readonly writable?: boolean
        ref?(): unknown
        unref?(): unknown
        cork?(): void
        uncork?(): void
      })
    | null
  connect(): Promise<unknown>
  disconnect(): void
  subscribe(channel: string): Promise<unknown>
  zrem(key: string, member: string): Promise<unknown>
  on(event: string, listener: (...args: never[]) => void): unknown
}

/** A client for a Cluster, with the parts that only it has. */
export interface ClusterClient extends Client {
  nodes(role?: string): Client[]
  /** Public, but not in the documentation of ioredis. Without it slots are refreshed at the next redirection. */
  refreshSlotsCache?(callback?: (error?: unknown) => void): void
  /** The connection for subscriptions. It is private to ioredis, so nothing may depend on it. */
  readonly subscriber?: { getInstance?(): Client | null }
}

/** Makes the store's own clients from the user's target, which is neither used nor changed. */
export interface Template {
  readonly isCluster: boolean
  readonly db: number
  /** The server's address by the settings. Equal settings have the same address. */
  readonly address: string
  client(timeout: number): Client | ClusterClient
}

interface Duplicable {
  readonly isCluster?: boolean
  readonly options: {
    readonly db?: number
    readonly redisOptions?: object
    readonly host?: string
    readonly port?: number
    readonly path?: string
    readonly name?: string
    readonly sentinels?: readonly unknown[] | null
  }
  /** Only a Cluster has them. */
  readonly startupNodes?: readonly unknown[]
  duplicate(...args: readonly unknown[]): unknown
}

/** @throws WEIR_INVALID_OPTION */
export function templateOf(target: RedisTarget): Template {
  const instance = instanceOf(target)
  if (instance.isCluster === true) {
    return {
      isCluster: true,
      db: 0,
      address: `cluster ${(instance.startupNodes ?? []).map(placeOf).sort().join(' ')}`,
      client: (timeout) =>
        instance.duplicate([], {
          ...CLUSTER_SETTINGS,
          slotsRefreshTimeout: timeout,
          redisOptions: { ...instance.options.redisOptions, ...connectionSettings(timeout) },
        }) as ClusterClient,
    }
  }
  return {
    isCluster: false,
    db: instance.options.db ?? 0,
    address: addressOf(instance.options),
    // `Keeper` gives up an attempt, and doesn't count time in which a busy process could not read.
    client: (timeout) => instance.duplicate({ ...connectionSettings(timeout), connectTimeout: 5 * timeout }) as Client,
  }
}

function addressOf({ db = 0, path, host = 'localhost', port = 6379, sentinels, name = '' }: Duplicable['options']): string {
  const server = sentinels ? `${name} ${sentinels.map(placeOf).sort().join(' ')}` : (path ?? `${host}:${port}`)
  return `${server}/${db}`
}

/** Returns the address of a node of a Cluster or of a Sentinel, which users pass as a port, a URL or an object. */
function placeOf(node: unknown): string {
  if (typeof node === 'number') return `:${node}`
  // The text before the host of a URL may be a password.
  if (typeof node === 'string') return node.replace(/^.*@/, '')
  const { host = '', port = '' } = (node ?? {}) as { readonly host?: string; readonly port?: number | string }
  return `${host}:${port}`
}

function instanceOf(target: RedisTarget): Duplicable {
  if (typeof target === 'string') {
    const allowed = 'a URL like redis://host:6379'
    if (!/^(rediss?|unix):\/\/|^\//.test(target)) throw invalidTarget(target, allowed)
    try {
      return new Redis(target, { lazyConnect: true }) as Duplicable
    } catch {
      // The URL is invalid, for example because its port is not a number.
      throw invalidTarget(target, allowed)
    }
  }
  if (typeof target === 'object' && target !== null) {
    if (isInstance(target)) return target
    checkPlaces(target)
    if ('cluster' in target) {
      if (!Array.isArray(target.cluster) || target.cluster.length === 0) {
        throw invalidTarget({}, '{ cluster: [{ host: "host", port: 6379 }] } with at least one startup node')
      }
      checkNames(target, (name) => name !== 'cluster' && name !== 'options', 'Use { cluster: […], options: { redisOptions } }')
      const options = { ...target.options, lazyConnect: true } as { readonly lazyConnect: true }
      return new Cluster(target.cluster, options) as unknown as Duplicable
    }
    checkNames(target, (name) => FOREIGN.has(name), `Use ${ALLOWED}`)
    // An instance of another library, or an array, would otherwise count as options and connect to the default port.
    if (Object.getPrototypeOf(target) === Object.prototype || Object.getPrototypeOf(target) === null) {
      // The types of ioredis 6 don't allow undefined options, but ioredis itself does.
      const options = { ...target, lazyConnect: true } as { readonly lazyConnect: true }
      return new Redis(options) as Duplicable
    }
  }
  throw invalidTarget(target, ALLOWED)
}

const ALLOWED =
  'a URL, an ioredis client, ioredis options or { cluster: […] }. For a client of node-redis, import redisStore from "@weir/redis/node-redis"'

/** Options that contain the server in node-redis and in other limiters. ioredis ignores them, and would connect to localhost. */
const FOREIGN: ReadonlySet<string> = new Set([
  ...['url', 'uri', 'socket', 'database', 'rootNodes', 'sentinelRootNodes'],
  ...['client', 'redis', 'sendCommand', 'storeClient', 'connection'],
])

/** @throws WEIR_UNKNOWN_OPTION */
function checkNames(target: object, isUnknown: (name: string) => boolean, instead: string): void {
  const name = Object.keys(target).find(isUnknown)
  if (name !== undefined) throw new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option "${name}" of ioredis. ${instead}.`)
}

function isInstance(target: object): target is Duplicable & IoredisInstance {
  const { duplicate, evalsha, status, options } = target as Record<string, unknown>
  return typeof duplicate === 'function' && typeof evalsha === 'function' && typeof status === 'string' && typeof options === 'object'
}

/**
 * Settings for the store's own connections, which override the user's. The client must not queue or resend commands, because the throttler
 * sends a failed batch again with newer counts. `Keeper` reconnects, with short delays.
 */
function connectionSettings(timeout: number): Record<string, unknown> {
  return {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: null,
    sentinelRetryStrategy: null,
    sentinelCommandTimeout: timeout,
    failoverDetector: false,
    // After a failover the old primary replies READONLY until the client looks up the new one.
    reconnectOnError: (error: Error) => /^(READONLY|LOADING|MASTERDOWN)/.test(error.message),
    connectTimeout: timeout,
    disconnectTimeout: 50,
    // The store has its own timeout, which uses the injected clock.
    commandTimeout: undefined,
    socketTimeout: undefined,
    enableReadyCheck: true,
    // While a server loads its dump, ioredis waits up to 10 s for its next attempt. That timer outlives `disconnect` and keeps the process
    // alive.
    maxLoadingRetryTime: 200,
    enableAutoPipelining: false,
    readOnly: false,
    role: 'master',
    keyPrefix: '',
    stringNumbers: false,
    monitor: false,
    scripts: undefined,
    himportFieldsets: undefined,
  }
}

const CLUSTER_SETTINGS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  clusterRetryStrategy: null,
  clusterNodeRetryStrategy: null,
  scaleReads: 'master',
  // Redirections of a slot that moves are followed. A call on a lost connection is not sent again.
  maxRedirections: 6,
  retryDelayOnFailover: 0,
  keyPrefix: '',
  slotsRefreshInterval: undefined,
  enableAutoPipelining: false,
  shardedSubscribers: false,
  scripts: undefined,
  himportFieldsets: undefined,
}
