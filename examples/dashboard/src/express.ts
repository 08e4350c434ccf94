import type { AddressInfo } from 'node:net'
import { dashboard } from '@weir/dashboard/express'
import { throttle } from '@weir/express'
import { prometheusMetrics } from '@weir/metrics/prometheus'
import express from 'express'
import { register } from 'prom-client'
import { access, exampleThrottler, port, say } from './throttler.ts'

const throttler = exampleThrottler()
prometheusMetrics(throttler)

const app = express()
// Mounted before the limits, so that they never lock you out.
app.use('/weir', dashboard(throttler, access))
app.get('/metrics', async (_request, response) => {
  response.type(register.contentType).send(await register.metrics())
})
app.use(throttle(throttler))
app.get('/', (_request, response) => {
  response.send('Hello from Express\n')
})

const server = app.listen(port, '127.0.0.1', () => say((server.address() as AddressInfo).port))
