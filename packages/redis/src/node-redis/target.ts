import type { Target } from '../connection/link.ts'
import { checkPlaces, invalidTarget } from '../connection/options.ts'
import { type Client, type ClientOptions, connectionSettings } from './client.ts'
import { ClusterLink } from './cluster-link.ts'
import { createClient } from './npm-install-redis.ts'
import { type AddressMap, askAny, clientAt, type Place, primaryOf, reached } from './sentinel.ts'
import { ServerLink } from './server-link.ts'

/** The parts of the result of `createClient()` of the `redis` package that are used. */
export interface NodeRedisClient {
  readonly options?: object | undefined
  readonly isReady: boolean
  duplicate(...args: never[]): unknown
}

/** The parts of the result of `createCluster()` of the `redis` package that are used. */
export interface NodeRedisCluster {
  readonly slots: object
  duplicate(...args: never[]): unknown
}

/** The options of `createCluster()`. */
export interface NodeRedisClusterOptions {
  /** Lists the nodes of the Cluster to connect to first, at least one. */
  readonly rootNodes: readonly object[]
  /**
   * Sets options of the clients of all nodes, such as the password.
   *
   * @default none
   */
  readonly defaults?: object
  /**
   * Maps the addresses that the Cluster reports to addresses that this process can reach.
   *
   * @default none
   */
  readonly nodeAddressMap?: unknown
}

/** The options of `createSentinel()`. Its result doesn't contain the addresses of the Sentinels. */
export interface NodeRedisSentinelOptions {
  /** Names the group of Redis servers that the Sentinels watch. */
  readonly name: string
  /** Lists the Sentinels to query first, at least one. */
  readonly sentinelRootNodes: readonly {
    /** Sets the Sentinel's host name or address. */
    readonly host: string
    /** Sets the Sentinel's port. */
    readonly port: number
  }[]
  /**
   * Sets options of the clients of Redis servers, such as the password.
   *
   * @default none
   */
  readonly nodeClientOptions?: object
  /**
   * Sets options of the clients of Sentinels.
   *
   * @default none
   */
  readonly sentinelClientOptions?: object
  /**
   * Maps the addresses that the Sentinels report to addresses that this process can reach.
   *
   * @default none
   */
  readonly nodeAddressMap?: unknown
}

/** The target of `redisStore` of `@weir/redis/node-redis`. */
export type NodeRedisTarget = NodeRedisClient | NodeRedisCluster | NodeRedisClusterOptions | NodeRedisSentinelOptions

const ALLOWED =
  'a client made by createClient() or createCluster() of the package redis, or the options of createCluster() or createSentinel(). For a URL or a client of ioredis, import redisStore from "@weir/redis"'

/** @throws WEIR_INVALID_OPTION */
export function targetOf(target: NodeRedisTarget): Target {
  if (typeof target !== 'object' || target === null) throw invalidTarget(target, ALLOWED)
  // Only the cluster itself has its options. All its versions keep them under this name.
  const { _options } = target as { readonly _options?: object }
  if (Object.getPrototypeOf(target) === Object.prototype) checkPlaces(target)
  const options = (_options ?? target) as Partial<NodeRedisClusterOptions & NodeRedisSentinelOptions>
  if (Array.isArray(options.rootNodes) && options.rootNodes.length > 0) return clusterTarget(options as NodeRedisClusterOptions)
  if (Array.isArray(options.sentinelRootNodes) && options.sentinelRootNodes.length > 0 && typeof options.name === 'string') {
    return sentinelTarget(options as NodeRedisSentinelOptions)
  }
  const { duplicate, sendCommand, isReady } = target as unknown as Record<string, unknown>
  if (typeof duplicate === 'function' && typeof sendCommand === 'function' && typeof isReady === 'boolean') {
    return serverTarget(target as NodeRedisClient)
  }
  throw invalidTarget(target, ALLOWED)
}

function serverTarget(instance: NodeRedisClient): Target {
  const options = (instance.options ?? {}) as ClientOptions
  const { database = 0, socket: { host = 'localhost', port = 6379, path } = {} } = options
  const duplicate = instance.duplicate as (overrides: ClientOptions) => unknown
  return {
    isCluster: false,
    db: database,
    address: `${path ?? `${host}:${port}`}/${database}`,
    open: (link) => new ServerLink(() => duplicate.call(instance, connectionSettings(options, link.timeout)) as Client, link),
  }
}

function sentinelTarget({
  name,
  sentinelRootNodes,
  nodeClientOptions,
  sentinelClientOptions,
  nodeAddressMap,
}: NodeRedisSentinelOptions): Target {
  const { database = 0 } = (nodeClientOptions ?? {}) as ClientOptions
  const map = nodeAddressMap as AddressMap | undefined
  return {
    isCluster: false,
    db: database,
    address: `${name} ${sentinelRootNodes
      .map(({ host, port }) => `${host}:${port}`)
      .sort()
      .join(' ')}/${database}`,
    open: (link) => {
      const { clock, timeout } = link
      const question = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]
      const asking = { clock, patience: timeout, open: (place: Place) => newClient(sentinelClientOptions, place, timeout) }
      let turn = 0
      const make = async (): Promise<Client> => {
        // Each attempt begins with another Sentinel, because the first one may be cut off and report an old primary.
        const first = turn++ % sentinelRootNodes.length
        const sentinels = [...sentinelRootNodes.slice(first), ...sentinelRootNodes.slice(0, first)]
        const place = await askAny(sentinels, asking, question, (reply) => primaryOf(reply, name))
        return newClient(nodeClientOptions, reached(place, map), timeout)
      }
      return new ServerLink(make, link)
    },
  }
}

function clusterTarget({ rootNodes, defaults, nodeAddressMap }: NodeRedisClusterOptions): Target {
  const places = (rootNodes as readonly ClientOptions[]).map(placeOf)
  const map = nodeAddressMap as AddressMap | undefined
  const client = (place: Place, timeout: number): Client => {
    const root = places.findIndex(({ host, port }) => host === place.host && port === place.port)
    const [common, own]: (ClientOptions | undefined)[] = [defaults, rootNodes[root]]
    return newClient({ ...common, ...own, socket: { ...common?.socket, ...own?.socket } }, place, timeout)
  }
  return {
    isCluster: true,
    db: 0,
    address: `cluster ${places
      .map(({ host, port }) => `${host}:${port}`)
      .sort()
      .join(' ')}`,
    open: (link) => {
      return new ClusterLink({ seeds: places, client, map }, link)
    },
  }
}

/**
 * The store's own clients are duplicates of this one, because the library needs a tenth of a second to make a class of clients and
 * remembers only the last one.
 */
let pattern: { duplicate(options: ClientOptions): unknown } | undefined

function newClient(options: ClientOptions | undefined, place: Place, timeout: number): Client {
  const own = clientAt(options, place)
  pattern ??= createClient() as unknown as { duplicate(options: ClientOptions): unknown }
  return pattern.duplicate({ ...own, ...connectionSettings(own, timeout) }) as Client
}

/** Returns the address of a root node of a Cluster, by its URL or its socket. */
function placeOf({ url, socket }: ClientOptions): Place {
  if (url !== undefined) {
    const { hostname, port } = new URL(url)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) }
  }
  return { host: socket?.host ?? 'localhost', port: socket?.port ?? 6379 }
}
