import type { AddressInfo } from 'node:net'
import { memoryStore } from '@weir/core'
import { throttle } from '@weir/express'
import { redisStore } from '@weir/redis'
import express from 'express'

// Each address may send three requests in ten seconds. With REDIS_URL, all processes of this program share the limit.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()

const app = express()
app.use(throttle({ key: 'ip', limit: 3, interval: '10s', store }))
app.get('/', (_req, res) => {
  res.send('Hello from Express\n')
})

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`Try: curl -i http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
