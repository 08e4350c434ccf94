import 'reflect-metadata'
import type { AbstractHttpAdapter } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'

const WITHOUT = {
  'counts all that has no route together': 'guards run for handlers only',
  'counts what has no route': 'guards run for handlers only',
}

/** What NestJS runs on. */
export interface Platform {
  readonly name: string
  adapter(): AbstractHttpAdapter
  /** What the adapter contract asks that it can't keep under NestJS, and why. */
  readonly without: Readonly<Record<string, string>>
}

export const PLATFORMS: readonly Platform[] = [
  {
    name: 'Express',
    adapter: () => new ExpressAdapter(),
    without: {
      ...WITHOUT,
      'counts all spellings of a route together': 'Express has no route for some of them, so that there is no handler',
    },
  },
  { name: 'Fastify', adapter: () => new FastifyAdapter() as unknown as AbstractHttpAdapter, without: WITHOUT },
]
