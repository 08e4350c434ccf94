import 'reflect-metadata'
import type { AbstractHttpAdapter } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { TrustedProxy } from '@weir/testing'

const WITHOUT = {
  'counts all that has no route together': 'guards run for handlers only',
  'counts what has no route': 'guards run for handlers only',
}

/** The server under NestJS. */
export interface Platform {
  readonly name: string
  /** Whether it serves HTTP/2. */
  readonly http2: boolean
  adapter(server?: { readonly proxy?: TrustedProxy | undefined; readonly http2?: boolean }): AbstractHttpAdapter
  /** The parts of the adapter contract that the server can't keep under NestJS, and the reasons. */
  readonly without: Readonly<Record<string, string>>
}

export const PLATFORMS: readonly Platform[] = [
  {
    name: 'Express',
    http2: false,
    adapter: ({ proxy } = {}) => {
      const adapter = new ExpressAdapter()
      if (proxy !== undefined) adapter.set('trust proxy', proxy === 'unix' ? 1 : 'loopback')
      return adapter
    },
    without: {
      ...WITHOUT,
      'counts all spellings of a route together': 'Express has no route for some of them, so that there is no handler',
    },
  },
  {
    name: 'Fastify',
    http2: true,
    adapter: ({ proxy, http2 = false } = {}) => {
      const trustProxy = proxy === 'unix' ? (_address: string, hop: number) => hop === 0 : (proxy ?? false)
      return new FastifyAdapter({ trustProxy, ...(http2 && ({ http2 } as object)) }) as unknown as AbstractHttpAdapter
    },
    without: WITHOUT,
  },
]
