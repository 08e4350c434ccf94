import type { Throttler } from '@weir/core'
import { missingOption } from '@weir/core/inspect'
import type { Middleware } from 'koa'
import { Dashboard, type DashboardHandler } from './dashboard.ts'
import type { DashboardOptions } from './options.ts'

export { type PasswordAccess, password } from './access/password.ts'

/**
 * The dashboard as a middleware of Koa 2 and 3, at the path in its options:
 * `app.use(dashboard(throttler, { path: '/weir', authorize }))`. Passes other requests on.
 *
 * @throws WeirError for invalid options, and without `authorize`
 */
export function dashboard(
  throttler: Throttler<string, never>,
  options: DashboardOptions & { readonly path: string },
): Middleware & Pick<DashboardHandler, 'close'> {
  const { path } = options ?? {}
  if (path === undefined) throw missingOption('path', 'Koa does not cut mount paths off. Set it, e.g. path: "/weir".')
  const made = new Dashboard(throttler, options)
  const middleware: Middleware = async (ctx, next) => {
    if (ctx.path !== path && !ctx.path.startsWith(`${path}/`)) return next()
    // Koa must not answer too. A body that another middleware has parsed is passed on.
    ctx.respond = false
    const { body } = ctx.request as { body?: unknown }
    const request = body === undefined ? ctx.req : Object.assign(ctx.req, { body })
    made.handle(request, ctx.res, () => ({ address: ctx.ip, secure: ctx.secure }))
  }
  return Object.assign(middleware, { close: () => made.close() })
}
