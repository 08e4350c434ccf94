import type { AddressInfo } from 'node:net'
import { memoryStore } from '@weir/core'
import { throttle } from '@weir/koa'
import { redisStore } from '@weir/redis'
import Koa from 'koa'

// Each address may send three requests in ten seconds. With REDIS_URL, all processes of this program share the limit.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()

const app = new Koa()
app.use(throttle({ key: 'ip', limit: 3, interval: '10s', store }))
app.use((ctx) => {
  ctx.body = 'Hello from Koa\n'
})

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`Try: curl -i http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
