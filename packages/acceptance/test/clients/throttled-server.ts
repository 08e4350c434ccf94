import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type ThrottleOptions, throttle } from '@weir/express'
import express from 'express'

/** A response of the server, with its time by `performance.now`. */
export interface Answered {
  readonly at: number
  readonly status: number
  /** The value of `Retry-After` in seconds, or 0 without that field. */
  readonly retryAfterSeconds: number
}

/** A server that allows two requests in two seconds, and records its responses. */
export interface ThrottledServer {
  readonly url: string
  readonly answered: readonly Answered[]
  close(): Promise<void>
}

export async function throttledServer(options: Partial<ThrottleOptions> = {}): Promise<ThrottledServer> {
  const answered: Answered[] = []
  const app = express()
  app.use((_req, res, next) => {
    const at = performance.now()
    res.on('finish', () => answered.push({ at, status: res.statusCode, retryAfterSeconds: Number(res.getHeader('retry-after') ?? 0) }))
    next()
  })
  const middleware = throttle({ limit: 2, interval: '2s', key: 'all', ...options } as ThrottleOptions)
  app.use(middleware)
  app.get('/', (_req, res) => void res.send('hello'))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    answered,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await middleware.throttler.close()
    },
  }
}
