import { serve } from '@hono/node-server'
import { memoryStore } from '@weir/core'
import { throttle } from '@weir/hono'
import { redisStore } from '@weir/redis'
import { Hono } from 'hono'

// Three requests in ten seconds for each address. With REDIS_URL every process of this program shares that limit.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()

const app = new Hono()
app.use(throttle({ key: 'ip', limit: 3, interval: '10s', store }))
app.get('/', (c) => c.text('Hello from Hono\n'))

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env['PORT'] ?? 3000) }, ({ port }) => {
  console.log(`Try: curl -i http://127.0.0.1:${port}/`)
})
