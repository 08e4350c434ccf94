import { RedisServer } from '../store/redis-server.ts'
import { serveParent, startChild, tell } from './child.ts'

/**
 * Holds the private redis-server. A process of its own, because redis-server would outlive a parent that is killed:
 * this one notices and takes it along.
 */
await startChild(async () => {
  const redis = new RedisServer(JSON.parse(process.argv[2] as string) as string)
  serveParent(
    () => redis.remove(),
    (order) => {
      if (order.type === 'demo:kill') redis.kill()
      else redis.start().catch((error: Error) => tell({ type: 'demo:failed', reason: error.message }))
    },
  )
  await redis.start()
  tell({ type: 'demo:ready', port: redis.port, about: `redis-server ${redis.version}` })
})
