import type { Throttler } from '@weir/core'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Dashboard } from './dashboard.ts'
import type { DashboardOptions } from './options.ts'

export { type PasswordAccess, password } from './access/password.ts'

/** Options of the plugin beside Fastify's own `prefix`. */
export interface DashboardPluginOptions extends Omit<DashboardOptions, 'path'> {
  /** Shows the cluster of this throttler, e.g. `app.throttler`. */
  readonly throttler: Throttler<string, never>
}

/**
 * The dashboard as a plugin of Fastify 4 and 5: `app.register(dashboard, { prefix: '/weir', throttler, authorize })`.
 *
 * @throws WeirError for invalid options, and without `authorize`
 */
export const dashboard: FastifyPluginAsync<DashboardPluginOptions> = async (instance: FastifyInstance, options) => {
  const { throttler, authorize, actions, maxClients } = options
  const made = new Dashboard(throttler, {
    authorize,
    ...(actions !== undefined && { actions }),
    ...(maxClients !== undefined && { maxClients }),
  })
  // The dashboard reads its bodies itself.
  instance.removeAllContentTypeParsers()
  instance.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
  // A prefix may contain parameters, so the mount path is a part of each request's path.
  const segments = instance.prefix.replace(/\/$/, '').split('/').length
  const answer = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack()
    const mount = request.url
      .replace(/[?#].*/s, '')
      .split('/')
      .slice(0, segments)
      .join('/')
    made.handle(request.raw, reply.raw, () => ({ address: request.ip, secure: request.protocol === 'https' }), undefined, mount)
  }
  // Excludes the dashboard from `@weir/fastify`, which limits routes before and after it. A limit must not lock operators out.
  const config: object = { throttle: false }
  for (const url of ['/', '/*']) instance.route({ method: ['GET', 'POST'], url, config, handler: answer })
  // Ends the streams, because a server that closes would wait for them.
  instance.addHook('preClose', async () => made.close())
}
