import { boundedConnections } from '@weir/testing/store-tests/bounded-connections'
import { createClient } from 'redis'
import { redisStore } from '../src/index.ts'
import { redisStore as nodeRedisStore } from '../src/node-redis/index.ts'
import { freshNamespace } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()
const namespace = freshNamespace()

boundedConnections(
  'ioredis',
  () => here.server,
  (port, timeout) => redisStore({ port }, { namespace, timeout }),
)
boundedConnections(
  'node-redis',
  () => here.server,
  (port, timeout) => nodeRedisStore(createClient({ url: `redis://127.0.0.1:${port}` }), { namespace, timeout }),
)
