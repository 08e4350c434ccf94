import { serve } from '@hono/node-server'
import { memoryStore } from '@weir/core'
import { throttle } from '@weir/hono'
import { redisStore } from '@weir/redis'
import { Hono } from 'hono'

// Each address may send three requests in ten seconds. With REDIS_URL, all processes of this program share the limit.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()

const app = new Hono()
app.use(throttle({ key: 'ip', limit: 3, interval: '10s', store }))
app.get('/', (c) => c.text('Hello from Hono\n'))

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env['PORT'] ?? 3000) }, ({ port }) => {
  console.log(`Try: curl -i http://127.0.0.1:${port}/`)
})
