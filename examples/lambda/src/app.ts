import { throttle } from '@weir/hono'
import { redisStore } from '@weir/redis'
import { Hono } from 'hono'
import { getConnInfo, handle, type LambdaEvent } from 'hono/aws-lambda'

// At module level, so that all invocations of an execution environment use one throttler and its connection.
const limit = throttle({
  name: 'app',
  key: 'ip',
  limit: 10,
  interval: '1h',
  store: redisStore(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'),
  address: (c) => getConnInfo(c).remote.address,
  // Reads the counts from the store after Lambda has frozen the process, for at most 50 ms.
  afterFreeze: 'sync',
})
limit.throttler.on('storeDown', () => console.warn('Redis does not answer'))

const app = new Hono<{ Bindings: { event: LambdaEvent } }>()
app.use(limit)
app.use(async (_c, next) => {
  // Lambda freezes the process after the response, so its counts are sent before. Meanwhile the handler works. While Redis is down, each
  // response waits for the timeout.
  const sent = limit.throttler.flush({ timeout: '500ms' })
  await next()
  await sent
})
app.get('/', (c) => c.text('Hello from Lambda\n'))

export const handler = handle(app)
