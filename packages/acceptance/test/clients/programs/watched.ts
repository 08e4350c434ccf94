import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { dashboard } from '@weir/dashboard'
import { paths, throttle } from '@weir/express'
import { prometheusMetrics } from '@weir/metrics/prometheus'
import { redisStore } from '@weir/redis'
import express from 'express'
import { register } from 'prom-client'

/** A gateway with each algorithm, several policies for one path, a dry run and a candidate, and everything that shows their numbers. */

const [address = ''] = process.argv.slice(2)
const key = (request: express.Request) => String(request.headers['x-client'])
const on = (path: string) => ({ interval: '10h', key, match: paths(`/${path}`) }) as const
const CENTRAL = { coordination: 'central', storeTimeout: '10s' } as const

const middleware = throttle({
  store: redisStore(address, { namespace: 'screens', timeout: '2s' }),
  policies: [
    { name: 'fixed', limit: 20, ...on('fixed') },
    { name: 'sliding', limit: 20, algorithm: slidingWindow(), ...on('sliding') },
    { name: 'counter', limit: 20, algorithm: slidingCounter(), ...on('counter'), ...CENTRAL },
    { name: 'log', limit: 20, algorithm: slidingLog(), ...on('log'), ...CENTRAL },
    { name: 'token', limit: 20, algorithm: tokenBucket({ burst: 20 }), ...on('token') },
    { name: 'leaky', limit: 20, algorithm: leakyBucket({ burst: 19, immediate: 19 }), ...on('leaky') },
    { name: 'short', limit: 5, ...on('both'), ...CENTRAL },
    { name: 'wide', limit: 1_000, ...on('both') },
    { name: 'dry', limit: 3, dryRun: true, ...on('both') },
    { name: 'next:short', limit: 2, candidate: true, ...on('both') },
    { name: 'cool', limit: 2, cooldown: '1s', ...on('cool'), ...CENTRAL },
  ],
})
prometheusMetrics(middleware.throttler)

const app = express()
app.use('/weir', dashboard(middleware.throttler, { authorize: 'none' }))
app.get('/metrics', async (_request, response) => void response.type('text').send(await register.metrics()))
app.get('/snapshot', (_request, response) => void response.json(snapshot(middleware.throttler, { top: 100 })))
app.use(middleware)
app.use((_request, response) => void response.send('ok'))
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
middleware.throttler.start()
process.send?.((server.address() as AddressInfo).port)
process.on('disconnect', () => process.exit())
