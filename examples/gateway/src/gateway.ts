import { setTimeout } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import { createThrottler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import weir from '@weir/fastify'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { toPolicy } from './policies.ts'
import type { Config } from './schema.ts'
import { storeAt } from './store.ts'

export interface Gateway {
  readonly app: FastifyInstance
  /** Reports in its health that it is closing, answers the open requests, and sends the last counts to the store. */
  close(): Promise<void>
}

/** Makes a reverse proxy that checks the limits before it forwards a request. */
export async function createGateway(config: Config): Promise<Gateway> {
  const throttler = createThrottler({
    policies: config.limits.map(toPolicy),
    store: await storeAt(config.store),
  }).start()
  throttler.on('storeDown', ({ cause }) => console.error(`The store is away, limiting by what is known here: ${String(cause)}`))
  throttler.on('storeUp', ({ durationMs: after }) => console.error(`The store is back after ${Math.round(after)} ms.`))

  const app = fastify({ trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false, forceCloseConnections: 'idle' })
  await app.register(weir, { throttler })

  let closing = false
  // The health for load balancers. It is not counted, and sends 503 once this instance should get no more requests.
  app.get('/-/health', { config: { throttle: false } }, async (_request, reply) => {
    const { state, nodes } = snapshot(throttler)
    return reply.code(closing ? 503 : 200).send({ status: closing ? 'closing' : 'ok', throttle: state, gateways: nodes })
  })

  for (const { prefix, upstream, rewrite } of config.routes) {
    await app.register(httpProxy, {
      upstream,
      prefix,
      rewritePrefix: rewrite ?? prefix,
      replyOptions: { rewriteRequestHeaders: (request, headers) => ({ ...headers, ...forwarded(request as FastifyRequest) }) },
    })
  }

  return {
    app,
    async close() {
      closing = true
      // Load balancers check the health only now and then. Until they notice, the gateway still answers their requests.
      await setTimeout(config.drainSeconds * 1000)
      await app.close()
      await throttler.close()
    },
  }
}

/** The client's address for the upstream's logs. Values from the client itself are forwarded only if they came through trusted proxies. */
function forwarded(request: FastifyRequest): Record<string, string> {
  return {
    'x-forwarded-for': request.ips?.toReversed().join(', ') ?? request.ip,
    'x-forwarded-proto': request.protocol,
    'x-forwarded-host': request.host,
  }
}
