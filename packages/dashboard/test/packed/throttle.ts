// Runs from the packed tarball, in the empty projects of packages/acceptance. Sends three requests to a limit of 2, and checks that each
// framework serves the dashboard with a password.
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createThrottler, memoryStore } from '@weir/core'
import { dashboard, password } from '@weir/dashboard'
import { dashboard as forExpress } from '@weir/dashboard/express'
import { dashboard as forFastify } from '@weir/dashboard/fastify'
import { dashboard as forKoa } from '@weir/dashboard/koa'
import express from 'express'
import { fastify } from 'fastify'
import Koa from 'koa'

async function title(listener: RequestListener, expected = 'Weir'): Promise<boolean> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/weir/`)
  const text = await response.text()
  server.closeAllConnections()
  server.close()
  return text.includes(`<title>${expected}`)
}

async function main(): Promise<void> {
  const throttler = createThrottler({ policies: [{ name: 'user', limit: 2, interval: '1h' }], store: memoryStore() })
  const outcomes = [throttler.check('ann'), throttler.check('ann'), throttler.check('ann')]
  const app = express()
  app.use('/weir', forExpress(throttler, { authorize: 'none' }))
  const koa = new Koa()
  koa.use(forKoa(throttler, { path: '/weir', authorize: 'none' }))
  const server = fastify()
  await server.register(forFastify, { prefix: '/weir', throttler, authorize: 'none' })
  await server.ready()
  const served = [
    await title(dashboard(throttler, { authorize: password('a long enough password') }), 'Sign in'),
    await title(app),
    await title(koa.callback()),
    await title(server.routing),
  ]
  console.log(served.every(Boolean) ? outcomes.map(({ allowed }) => (allowed ? 'allowed' : 'rejected')).join(' ') : 'not served')
  await server.close()
  await throttler.close()
}

void main()
