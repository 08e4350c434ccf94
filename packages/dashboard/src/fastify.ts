import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { dashboard as handler } from './dashboard.ts'
import type { DashboardOptions } from './options.ts'
import type { DashboardThrottler } from './source.ts'

/** What the plugin takes beside Fastify's own `prefix`. */
export interface DashboardPluginOptions extends Omit<DashboardOptions, 'path'> {
  /** Whose cluster is shown, e.g. `app.throttler`. */
  readonly throttler: DashboardThrottler
}

/**
 * The page as a plugin of Fastify 4 and 5: `app.register(dashboard, { prefix: '/weir', throttler, authorize })`.
 *
 * @throws WeirError for options that can't be used
 */
export const dashboard: FastifyPluginCallback<DashboardPluginOptions> = (instance: FastifyInstance, options, done) => {
  const { throttler, authorize, actions, maxClients } = options
  const handle = handler(throttler, {
    ...(authorize !== undefined && { authorize }),
    ...(actions !== undefined && { actions }),
    ...(maxClients !== undefined && { maxClients }),
  })
  // The page reads its bodies itself.
  instance.removeAllContentTypeParsers()
  instance.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack()
    handle(request.raw, reply.raw)
  }
  // Wherever `@weir/fastify` stands, which covers routes before and after it: a limit must not shut operators out.
  const config: object = { throttle: false }
  for (const url of ['/', '/*']) instance.route({ method: ['GET', 'POST'], url, config, handler: answer })
  // A server that closes would wait for the streams.
  instance.addHook('preClose', async () => handle.close())
  done()
}
