import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { concurrency, memoryStore } from '@weir/core'
import { paths, throttle } from '@weir/express'
import { redisStore } from '@weir/redis'
import express, { type Response } from 'express'

// With REDIS_URL, all processes of this program share the counts of "slow-down".
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()

const app = express()
app.use((_req, res, next) => {
  res.locals['arrived'] = performance.now()
  next()
})
app.use(
  throttle({
    store,
    policies: [
      {
        // Each address may send three requests in ten seconds without a delay. The next five are delayed, each by 300 ms more than the one
        // before. Further ones are rejected.
        name: 'slow-down',
        match: paths('/'),
        key: 'ip',
        limit: 3,
        interval: '10s',
        delay: (over) => (over > 5 ? Number.POSITIVE_INFINITY : 300 * over),
      },
      {
        // One report runs at a time. Others wait for up to five seconds.
        name: 'reports',
        match: paths('/report'),
        key: 'all',
        limit: 1,
        algorithm: concurrency(),
        coordination: 'local',
        delay: '5s',
      },
    ],
  }),
)

app.get('/', (_req, res) => {
  res.send(`Hello after ${waited(res)} ms\n`)
})
app.get('/report', async (_req, res) => {
  await setTimeout(500)
  res.send(`A report after ${waited(res)} ms\n`)
})

function waited(res: Response): number {
  return Math.round(performance.now() - res.locals['arrived'])
}

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`Try: curl -i http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
