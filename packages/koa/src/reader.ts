import { foldRoute, headerValue, parseurlReadings, type RequestReader } from '@weir/core/adapter'
import type { Context } from 'koa'

/** The methods of a router (`@koa/router`) by which Weir finds the route of a request before the router itself runs. */
export interface RouterLike {
  match(path: string, method: string): { route: boolean; pathAndMethod: readonly { path: string | RegExp }[] }
}

/** Reads requests of Koa 2 and 3. */
export function koaReader(router: RouterLike | undefined): RequestReader<Context> {
  return Object.freeze({
    options: ['router'],
    method: (ctx: Context) => ctx.method,
    // koa-mount cuts its prefix off `path`; two mounts of one app are two places.
    path: (ctx: Context) => ctx.originalUrl,
    // Whether by a mount or by a middleware of the host can't be told.
    rewritten: (ctx: Context) => (ctx.url === ctx.originalUrl ? undefined : ctx.url),
    readings: parseurlReadings,
    route: (ctx: Context) => {
      const pattern = matched(ctx, router)
      if (pattern === undefined) return undefined
      const mount = mountOf(ctx)
      return pattern.startsWith('/') ? mount + pattern : `${mount}/${pattern}`
    },
    ip: (ctx: Context) => ctx.ip || undefined,
    socket: (ctx: Context) => ctx.req.socket,
    forgeable: (ctx: Context) => {
      const { proxy, maxIpsCount, proxyIpHeader } = ctx.app as { proxy?: boolean; maxIpsCount?: number; proxyIpHeader?: string }
      const listed = (proxyIpHeader ?? 'X-Forwarded-For').toLowerCase() === 'x-forwarded-for'
      return proxy === true && listed && !maxIpsCount
        ? '"app.proxy" is true without "app.maxIpsCount", so the first address of X-Forwarded-For is believed, whoever wrote it. Set "app.maxIpsCount" to the number of your proxies'
        : undefined
    },
    howToTrust: () => 'Set app.proxy = true, and app.maxIpsCount = 1 for one proxy.',
    header: (ctx: Context, name: string) => headerValue(ctx.headers[name]),
  })
}

/** Where the app is mounted: what koa-mount cut off the path, or nothing. */
function mountOf({ url, originalUrl, path }: Context): string {
  // A target may also be longer than its path because Koa trims it; a client could make as many mounts of that as it likes.
  if (url === originalUrl) return ''
  const query = originalUrl.indexOf('?')
  const [whole = ''] = parseurlReadings(query === -1 ? originalUrl : originalUrl.slice(0, query), originalUrl) ?? []
  return whole.length > path.length && whole.endsWith(path) ? foldRoute(whole.slice(0, -path.length)) : ''
}

/** The pattern of the route: `@koa/router` leaves it on the context for its own middleware. */
function matched(ctx: Context, router: RouterLike | undefined): string | undefined {
  const left: unknown = ctx['_matchedRoute']
  if (left !== undefined) return String(left)
  if (router === undefined) return undefined
  let found: ReturnType<RouterLike['match']>
  try {
    found = router.match(ctx.path, ctx.method)
  } catch {
    // A target that the router itself can't read; it counts all the same.
    return undefined
  }
  const route = found.route ? found.pathAndMethod.at(-1) : undefined
  // The router knows all routes: what it doesn't find is answered by none of them.
  return route === undefined ? undefined : String(route.path)
}
