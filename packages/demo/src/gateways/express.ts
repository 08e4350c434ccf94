import type { Server } from 'node:http'
import type { Throttler } from '@weir/core'
import { throttle } from '@weir/express'
import express from 'express'
import { reasonOf, stampingServer } from '../processes/front.ts'
import { createProxy } from './proxy.ts'

export async function expressGateway(throttler: Throttler, backendPort: number): Promise<Server> {
  const app = express()
  const proxy = createProxy(backendPort)
  app.use(throttle({ throttler, message: reasonOf }))
  app.use((request, response) => proxy(request, response))
  return stampingServer(app)
}
