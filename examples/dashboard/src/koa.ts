import type { AddressInfo } from 'node:net'
import { dashboard } from '@weir/dashboard/koa'
import { throttle } from '@weir/koa'
import Koa from 'koa'
import { access, exampleThrottler, port, say } from './throttler.ts'

const throttler = exampleThrottler()

const app = new Koa()
// Mounted before the limits, so that they never lock you out.
app.use(dashboard(throttler, { path: '/weir', ...access }))
app.use(throttle(throttler))
app.use((ctx) => {
  ctx.body = 'Hello from Koa\n'
})

const server = app.listen(port, '127.0.0.1', () => say((server.address() as AddressInfo).port))
