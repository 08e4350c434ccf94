import { fileURLToPath } from 'node:url'
import { promisesSettle } from '@weir/testing/store-tests/promises-settle'
import { RedisServer } from '@weir/tooling/redis-servers'

promisesSettle({
  directory: fileURLToPath(new URL('..', import.meta.url)),
  program: 'test/programs/awaits.ts',
  external: ['ioredis'],
  start: () => RedisServer.start(),
  urlAt: (port) => `redis://127.0.0.1:${port}`,
})
