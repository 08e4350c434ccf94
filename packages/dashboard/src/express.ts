import type { Request, RequestHandler } from 'express'
import { type DashboardHandler, dashboard as handler } from './dashboard.ts'
import type { Access, DashboardOptions } from './options.ts'
import type { DashboardThrottler } from './source.ts'

/** As `DashboardOptions`; `authorize` gets the request of Express, with what middleware before put there. */
export interface ExpressDashboardOptions extends Omit<DashboardOptions, 'authorize'> {
  /** As in `DashboardOptions`. */
  readonly authorize?: (request: Request, access: Access) => boolean | Promise<boolean>
}

/**
 * The page as a middleware of Express 4 and 5: `app.use('/weir', dashboard(throttler, options))`.
 *
 * @throws WeirError for options that can't be used
 */
export function dashboard(
  throttler: DashboardThrottler,
  options: ExpressDashboardOptions = {},
): RequestHandler & Pick<DashboardHandler, 'close'> {
  return handler(throttler, options as DashboardOptions)
}
