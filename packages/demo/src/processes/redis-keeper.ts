import { RedisServer } from '../store/redis-server.ts'
import { serveParent, startChild, tell } from './child.ts'

/**
 * Keeps the private redis-server in its own process. If the demo's parent process is killed, redis-server would keep running, so this
 * process notices and ends it.
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
