import type { Server } from 'node:http'
import type { Throttler } from '@weir/core'
import { throttle } from '@weir/koa'
import Koa from 'koa'
import { reasonOf, stampingServer } from '../processes/front.ts'
import { createProxy } from './proxy.ts'

export async function koaGateway(throttler: Throttler, backendPort: number): Promise<Server> {
  const app = new Koa()
  const proxy = createProxy(backendPort)
  app.use(throttle({ throttler, message: reasonOf }))
  app.use((context) => {
    // Keeps Koa from sending its own answer.
    context.respond = false
    proxy(context.req, context.res)
  })
  const handle = app.callback()
  return stampingServer((request, response) => void handle(request, response))
}
