import type { Server } from 'node:http'
import type { Throttler } from '@weir/core'
import weir from '@weir/fastify'
import fastify from 'fastify'
import { reasonOf, stampingServer } from '../processes/front.ts'
import { createProxy } from './proxy.ts'

export async function fastifyGateway(throttler: Throttler, backendPort: number): Promise<Server> {
  const app = fastify({ serverFactory: stampingServer })
  const proxy = createProxy(backendPort)
  await app.register(weir, { throttler, message: reasonOf })
  // The backend reads the body.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.setNotFoundHandler({ preHandler: app.throttle() }, (request, reply) => {
    reply.hijack()
    proxy(request.raw, reply.raw)
  })
  await app.ready()
  return app.server
}
