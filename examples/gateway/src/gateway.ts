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
  /** Says in its health that it ends, answers what is under way, hands the last counts to the store. */
  close(): Promise<void>
}

/** A reverse proxy whose requests pass the limits first. */
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
  // For load balancers: not counted, and 503 as soon as this instance wants no more requests.
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
      // Balancers ask once in a while: until they have noticed, their requests are still answered.
      await setTimeout(config.drainSeconds * 1000)
      await app.close()
      await throttler.close()
    },
  }
}

/** Who asked, for the upstream's logs. What the client itself claims is passed on only by proxies that are trusted. */
function forwarded(request: FastifyRequest): Record<string, string> {
  return {
    'x-forwarded-for': request.ips?.toReversed().join(', ') ?? request.ip,
    'x-forwarded-proto': request.protocol,
    'x-forwarded-host': request.host,
  }
}
