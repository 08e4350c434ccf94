import type { Throttler } from '@weir/core'
import type { Request, RequestHandler } from 'express'
import { Dashboard, type DashboardHandler } from './dashboard.ts'
import type { DashboardOptions } from './options.ts'

export { type PasswordAccess, password } from './access/password.ts'

/** Like `DashboardOptions`, but a function in `authorize` gets Express's request, with the properties that earlier middleware added. */
export type ExpressDashboardOptions = DashboardOptions<Request>

/**
 * The dashboard as a middleware of Express 4 and 5: `app.use('/weir', dashboard(throttler, { authorize }))`.
 *
 * @throws WeirError for invalid options, and without `authorize`
 */
export function dashboard(
  throttler: Throttler<string, never>,
  options: ExpressDashboardOptions,
): RequestHandler & Pick<DashboardHandler, 'close'> {
  const made = new Dashboard(throttler, options as DashboardOptions)
  const middleware: RequestHandler = (request, response, next) => {
    made.handle(request, response, () => ({ address: request.ip, secure: request.secure }), next)
  }
  return Object.assign(middleware, { close: () => made.close() })
}
