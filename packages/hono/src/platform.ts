import { type Platform, platformOf } from '@weir/web/adapter'
import type { Context } from 'hono'

/** The platform that passed a request to the application. `app.request()` in tests passes none. */
export function platformIn(c: Context): Platform {
  return platformOf(c.env)
}
