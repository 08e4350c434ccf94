import { ipcStore } from '@weir/core/ipc'
import { etcdStore } from '@weir/etcd'
import { postgresStore } from '@weir/postgres'
import { redisStore } from '@weir/redis'
import { redisStore as nodeRedisStore } from '@weir/redis/node-redis'
import { afterEach, expect, test, vi } from 'vitest'

afterEach(() => {
  vi.unstubAllGlobals()
})

test.each<[string, () => unknown]>([
  ['redisStore', () => redisStore('redis://localhost')],
  ['redisStore', () => nodeRedisStore({ rootNodes: [{ url: 'redis://localhost' }] })],
  ['postgresStore', () => postgresStore('postgres://localhost')],
  ['etcdStore', () => etcdStore('http://localhost:2379')],
  ['ipcStore', () => ipcStore()],
])('in Workers %s() throws and names durableObjectStore', (name, make) => {
  expect(make).not.toThrow()
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
  expect(make).toThrow(
    expect.objectContaining({
      code: 'WEIR_INVALID_OPTION',
      message: expect.stringContaining(`${name}() can't be used in Cloudflare Workers`),
    }),
  )
  expect(make).toThrow(/import \{ durableObjectStore \} from '@weir\/workers'/)
})
