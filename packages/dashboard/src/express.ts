import type { RequestHandler } from 'express'
import { type DashboardHandler, dashboard as handler } from './dashboard.ts'
import type { DashboardOptions } from './options.ts'
import type { DashboardThrottler } from './source.ts'

/**
 * The page as a middleware of Express 4 and 5: `app.use('/weir', dashboard(throttler, options))`.
 *
 * @throws WeirError for options that can't be used
 */
export function dashboard(throttler: DashboardThrottler, options: DashboardOptions = {}): RequestHandler & Pick<DashboardHandler, 'close'> {
  return handler(throttler, options)
}
