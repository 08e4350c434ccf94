import { foldRoute, headerValue, parseurlReadings, type RequestReader, trustsAnyone } from '@weir/core/adapter'
import type { Request } from 'express'

/** Reads requests of Express 4 and 5. */
export const expressReader: RequestReader<Request> = Object.freeze({
  method: (req: Request) => req.method,
  // Not `url`, because a router removes its prefix from it. Two mounts of one router are two routes.
  path: (req: Request) => req.originalUrl ?? req.url,
  rewritten: ({ baseUrl, originalUrl, url }: Request) => {
    if (url === originalUrl || originalUrl === undefined || url.charCodeAt(0) !== 47) return undefined
    // A mount removes its prefix and leaves at least a slash, which is no rewrite.
    if (originalUrl.startsWith(baseUrl) && originalUrl.endsWith(url) && originalUrl.length === baseUrl.length + url.length) return undefined
    return baseUrl + url
  },
  readings: parseurlReadings,
  route: (req: Request) => {
    // Express sets a route only for the middleware of one: `app.get('/users/:id', throttle(...), ...)`.
    const pattern: unknown = req.route?.path
    if (pattern === undefined) return undefined
    const text = typeof pattern === 'string' ? pattern : String(pattern)
    const prefix = req.baseUrl === '' ? '' : foldRoute(req.baseUrl)
    return text.startsWith('/') ? prefix + text : `${prefix}/${text}`
  },
  ip: (req: Request) => req.ip,
  socket: (req: Request) => req.socket,
  forgeable: (req: Request) =>
    trustsAnyone(req)
      ? '"trust proxy" trusts every address, so the first address of X-Forwarded-For is used, even if a client wrote it. Set it to the addresses of your proxies'
      : undefined,
  howToTrust: (_req: Request, withoutAddress: boolean) =>
    withoutAddress
      ? 'Call app.set("trust proxy", 1): no list of addresses contains a Unix socket.'
      : 'Call app.set("trust proxy", "10.0.0.0/8") with the address or network of your proxy.',
  header: (req: Request, name: string) => headerValue(req.headers[name]),
})
