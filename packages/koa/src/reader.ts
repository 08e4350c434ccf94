import { foldRoute, headerValue, parseurlReadings, type RequestReader } from '@weir/core/adapter'
import type { Context } from 'koa'

/** The part of a router (`@koa/router`) that Weir uses to find the route of a request before the router itself runs. */
export interface RouterLike {
  match(path: string, method: string): { route: boolean; pathAndMethod: readonly { path: string | RegExp }[] }
}

/** Reads requests of Koa 2 and 3. */
export function koaReader(router: RouterLike | undefined): RequestReader<Context> {
  return Object.freeze({
    options: ['router'],
    method: (ctx: Context) => ctx.method,
    // Not `path`, because koa-mount removes its prefix from it. Two mounts of one app are two routes.
    path: (ctx: Context) => ctx.originalUrl,
    // A mount and a rewriting middleware look the same here.
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
        ? '"app.proxy" is true without "app.maxIpsCount", so the first address of X-Forwarded-For is used, even if a client wrote it. Set "app.maxIpsCount" to the number of your proxies'
        : undefined
    },
    howToTrust: () => 'Set app.proxy = true, and app.maxIpsCount = 1 for one proxy.',
    header: (ctx: Context, name: string) => headerValue(ctx.headers[name]),
  })
}

/** The prefix that koa-mount removed from the path, or an empty string. */
function mountOf({ url, originalUrl, path }: Context): string {
  // Koa trims the path, so a target with spaces is longer than its path. That is no mount, or a client could invent any number of them.
  if (url === originalUrl) return ''
  const query = originalUrl.indexOf('?')
  const [whole = ''] = parseurlReadings(query === -1 ? originalUrl : originalUrl.slice(0, query), originalUrl) ?? []
  return whole.length > path.length && whole.endsWith(path) ? foldRoute(whole.slice(0, -path.length)) : ''
}

/** The pattern of the route. `@koa/router` sets it on the context only for its own middleware, so the router is called otherwise. */
function matched(ctx: Context, router: RouterLike | undefined): string | undefined {
  const left: unknown = ctx['_matchedRoute']
  if (left !== undefined) return String(left)
  if (router === undefined) return undefined
  let found: ReturnType<RouterLike['match']>
  try {
    found = router.match(ctx.path, ctx.method)
  } catch {
    // The router can't read this target. The request counts anyway.
    return undefined
  }
  const route = found.route ? found.pathAndMethod.at(-1) : undefined
  // The router contains all routes, so a request that it doesn't match has none.
  return route === undefined ? undefined : String(route.path)
}
