import type { Store } from '@weir/core'
import { createClient } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { redisStore } from '../src/index.ts'
import { redisStore as nodeRedisStore } from '../src/node-redis/index.ts'
import { PATIENT } from './fixtures.ts'

type OpenAt = (at: { readonly url: string }, namespace: string, user?: { readonly username?: string; readonly password: string }) => Store

/** Stores by client, for tests that all clients must pass. */
export const createStore: Readonly<Record<string, OpenAt>> = {
  ioredis: ({ url }, namespace, user) => {
    const { hostname, port } = new URL(url)
    return redisStore(user === undefined ? url : { host: hostname, port: Number(port), ...user }, { ...PATIENT, namespace })
  },
  'redis 6': ({ url }, namespace, user) => nodeRedisStore(createClient({ url, ...user }), { ...PATIENT, namespace }),
  'redis 5': ({ url }, namespace, user) =>
    nodeRedisStore(createClient5({ url, ...user }) as unknown as ReturnType<typeof createClient>, { ...PATIENT, namespace }),
}
