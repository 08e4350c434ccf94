import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expressRateLimitStore } from '@weir/compat/express-rate-limit'
import { nestThrottlerStorage } from '@weir/compat/nestjs-throttler'
import { limitedLine, snapshot } from '@weir/core/inspect'
import { dashboard } from '@weir/dashboard'
import { prometheusMetrics } from '@weir/metrics/prometheus'
import { redisStore } from '@weir/redis'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { register } from 'prom-client'

/** A gateway with the stores of other limiters. Everything that shows their numbers is there before their first request. */

const [address = ''] = process.argv.slice(2)
const HOURS = 36_000_000

const store = redisStore(address, { namespace: 'kept', timeout: '2s' })
const storage = nestThrottlerStorage(store)
const { throttler } = storage
prometheusMetrics(throttler)

const app = express()
const keyGenerator = (request: express.Request) => String(request.headers['x-client'])
app.use('/weir', dashboard(throttler, { authorize: 'none' }))
app.get('/metrics', async (_request, response) => void response.type('text').send(await register.metrics()))
app.get('/snapshot', (_request, response) => void response.json(snapshot(throttler, { top: 100 })))
app.get('/line', (_request, response) => void response.send(limitedLine(throttler)))
app.get('/explain', (_request, response) => void response.json(throttler.explain('mallory')))
app.get('/usage', async (_request, response) => void response.json(await throttler.usage('mallory')))
// Nest's guard calls the storage in this way, with a limit and a window for each request.
app.get('/nest', async (request, response, next) => {
  const { isBlocked } = await storage.increment(keyGenerator(request), HOURS, 10, HOURS, 'default')
  if (isBlocked) response.sendStatus(429)
  else next()
})
let limiter: express.RequestHandler | undefined
app.get('/express', (request, response, next) => {
  limiter ??= rateLimit({
    windowMs: HOURS,
    limit: 20,
    keyGenerator,
    validate: { creationStack: false },
    store: expressRateLimitStore(store, { prefix: 'api' }),
  })
  limiter(request, response, next)
})
app.use((_request, response) => void response.send('ok'))
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
throttler.start()
process.send?.((server.address() as AddressInfo).port)
process.on('disconnect', () => process.exit())
