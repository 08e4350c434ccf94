import type { Store } from '@weir/core'
import { etcdStore } from '@weir/etcd'
import { postgresStore } from '@weir/postgres'
import { redisStore } from '@weir/redis'
import { redisStore as nodeRedisStore } from '@weir/redis/node-redis'
import { createClient, createCluster } from 'redis'
import type { Target } from './protocol.ts'

/** The environment variable with the client library of processes. */
export const CLIENT = 'WEIR_FAULTS_CLIENT'

/** The schema that belongs to a namespace. */
export function schemaOf(namespace: string): string {
  return namespace.replaceAll('-', '_')
}

/** Opens the store of a process. The environment can name the client library for Redis. Default: ioredis. */
export function storeOf(target: Target, namespace: string): Store {
  if (typeof target === 'string' && target.startsWith('http:')) return etcdStore(target, { namespace })
  if (typeof target === 'string' && target.startsWith('postgres:')) return postgresStore(target, { schema: schemaOf(namespace) })
  return process.env[CLIENT] === 'node-redis'
    ? nodeRedisStore(clientOf(target), { namespace })
    : redisStore(target as Parameters<typeof redisStore>[0], { namespace })
}

/** Converts options of ioredis for the package `redis`. */
function clientOf(target: Target): Parameters<typeof nodeRedisStore>[0] {
  if (typeof target === 'string') return createClient({ url: target })
  if ('cluster' in target) {
    const { redisOptions } = (target.options ?? {}) as { readonly redisOptions?: Record<string, unknown> }
    const rootNodes = (target.cluster as readonly { readonly host: string; readonly port: number }[]).map((socket) => ({
      socket: { ...socket },
    }))
    return createCluster({ rootNodes, defaults: optionsOf(redisOptions ?? {}) })
  }
  if ('sentinels' in target) return { name: target.name as string, sentinelRootNodes: target.sentinels as { host: string; port: number }[] }
  return createClient(optionsOf(target))
}

function optionsOf({ host, port, tls, ...rest }: Readonly<Record<string, unknown>>): object {
  return {
    ...rest,
    socket: {
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port }),
      ...(tls !== undefined && { ...(tls as object), tls: true }),
    },
  }
}
