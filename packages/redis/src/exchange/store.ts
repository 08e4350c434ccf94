import { backgroundStore, type Store } from '@weir/core/sync'
import { decides } from '../central/decides.ts'
import type { Target } from '../connection/link.ts'
import type { CheckedOptions } from '../connection/options.ts'
import { Keys } from '../keys/keys.ts'
import { RedisConnection } from './store-connection.ts'

/** The number of shards in a Cluster: enough for a dozen primaries, and few enough for a heartbeat to call all of them each second. */
const CLUSTER_BUCKETS = 16

/** Makes a store on a server or Cluster, with any client library. */
export function storeAt(target: Target, options: CheckedOptions): Store {
  const keys = new Keys(options.namespace, options.shards ?? (target.isCluster ? CLUSTER_BUCKETS : 1))
  return backgroundStore({
    kind: 'redis',
    address: `${target.address} ${options.namespace}`,
    decides,
    reserves: true,
    open: (node) => new RedisConnection(node, target, keys, options),
  })
}
