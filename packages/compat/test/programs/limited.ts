import type { AddressInfo } from 'node:net'
import { redisStore } from '@weir/redis'
import express from 'express'
import { MemoryStore, rateLimit } from 'express-rate-limit'
import { expressRateLimitStore } from '../../src/express-rate-limit.ts'

// One of several processes behind a balancer, with a limit of 100 per ten hours for all clients together, in each kind of store.
const store = expressRateLimitStore(redisStore(process.argv[2] as string))
const limit = { windowMs: 36_000_000, limit: 100, keyGenerator: () => 'all' }
const app = express()
app.get('/weir', rateLimit({ ...limit, store }), (_req, res) => void res.send('hello'))
app.get('/memory', rateLimit({ ...limit, store: new MemoryStore() }), (_req, res) => void res.send('hello'))
// Without a first sync, a process doesn't count the others yet.
store.throttler.start()
const server = app.listen(0, '127.0.0.1', async () => {
  while (store.throttler.state !== 'synced') await new Promise((resolve) => setTimeout(resolve, 10))
  process.send?.((server.address() as AddressInfo).port)
})
