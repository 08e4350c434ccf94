import fastifyRateLimit, { type RateLimitPluginOptions } from '@fastify/rate-limit'
import { fastifyRateLimitStore } from '@weir/compat/fastify-rate-limit'
import { fastify } from 'fastify'
import { Answer, isAllowed } from './answer.ts'
import type { Connections, Handles, Kind, Limit } from './limit.ts'

export async function fastifyPlugin(kind: Kind, { name, limit, interval }: Limit, { weir, redis }: Connections): Promise<Handles> {
  const own: RateLimitPluginOptions = {
    weir: () => ({ store: fastifyRateLimitStore(weir) }),
    redis: () => ({ redis, nameSpace: name }),
    memory: () => ({}),
  }[kind]()
  const app = fastify()
  await app.register(fastifyRateLimit, { global: false, max: limit, timeWindow: interval, ...own })
  const handler = app.rateLimit() as unknown as (request: object, reply: object) => Promise<void>
  const routeOptions = { config: {} }
  return (ip) => isAllowed(handler({ ip, headers: {}, routeOptions }, new Answer()))
}
