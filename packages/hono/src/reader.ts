import { anyReadings, pathOf, type RequestReader } from '@weir/core/adapter'
import { foundAddress, socketOf } from '@weir/web/adapter'
import type { Context } from 'hono'
import { type AddressOf, reportedAddress } from './address.ts'
import { platformIn } from './platform.ts'
import { samplesOf } from './route-samples.ts'

/** Reads requests of Hono 4. */
export function honoReader(address: AddressOf = reportedAddress): RequestReader<Context> {
  return Object.freeze({
    options: ['address'],
    method: (c: Context) => c.req.method,
    path: sentTarget,
    // The router uses the path that `@hono/node-server` and the option `getPath` make from the target.
    rewritten: (c: Context) => {
      const { path } = c.req
      // One character per byte, as in a target.
      return pathOf(sentTarget(c)) === path ? undefined : Buffer.from(path, 'utf8').toString('latin1')
    },
    readings: anyReadings,
    route: patternOf,
    pattern: patternOf,
    samples: samplesOf,
    ip: (c: Context) => foundAddress(address(c), 'getConnInfo(c).remote.address'),
    socket: (c: Context) => socketOf(platformIn(c), c.req.raw),
    howToTrust: (c: Context) =>
      socketOf(platformIn(c), c.req.raw) === undefined
        ? 'Set the option "address" to a function, e.g. (c) => getConnInfo(c).remote.address: Weir finds it by itself only on @hono/node-server, Bun, Deno, Workers and Vercel.'
        : 'Set the option address: forwardedAddress(1) for one proxy.',
    header: (c: Context, name: string) => c.req.header(name),
  })
}

/**
 * The pattern of the route that answers. Hono finds all matching routes before the first middleware runs. A handler has one parameter, the
 * context, and a middleware also has `next`. `matchedRoutes()` of `hono/route` finds nothing if the context comes from another copy of
 * Hono, e.g. its CommonJS build.
 */
function patternOf(c: Context): string | undefined {
  let last: string | undefined
  for (const { handler, method, path } of c.req.matchedRoutes) {
    if (handlerIn(handler).length < 2) return path
    // Middleware from `use` has the method ALL. Middleware for one method may answer itself.
    if (method !== 'ALL') last = path
  }
  return last
}

/** The handler itself. Hono wraps handlers of a sub-application with `onError`, and keeps the original on the wrapper. */
function handlerIn(handler: { readonly length: number }): { readonly length: number } {
  const inner: unknown = (handler as { __COMPOSED_HANDLER?: unknown }).__COMPOSED_HANDLER
  return typeof inner === 'function' ? handlerIn(inner as typeof handler) : handler
}

/** The target as the client sent it. */
function sentTarget(c: Context): string {
  return platformIn(c).incoming?.url ?? targetOf(c.req.url)
}

/** The target of a request that was made in code. Its URL is absolute. */
function targetOf(url: string): string {
  const path = url.indexOf('/', url.indexOf('://') + 3)
  return path === -1 ? '/' : url.slice(path)
}
