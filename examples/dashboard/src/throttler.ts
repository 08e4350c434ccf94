import type { IncomingMessage } from 'node:http'
import { createThrottler, memoryStore, type Throttler } from '@weir/core'
import type { Access } from '@weir/dashboard'
import { redisStore } from '@weir/redis'

/** With REDIS_URL every process of these programs is a node of one cluster. */
export function exampleThrottler(): Throttler {
  const redis = process.env['REDIS_URL']
  return createThrottler({
    store: redis ? redisStore(redis) : memoryStore(),
    policies: [
      { name: 'everyone', key: 'all', limit: 1_000, interval: '1m' },
      { name: 'address', key: 'ip', limit: 60, interval: '1m', cooldown: '30s' },
    ],
  })
}

/** Who comes with the password, given to the program as PASSWORD, may do everything; without one only this machine may look. */
export const access: { actions?: boolean; authorize?: (request: IncomingMessage, access: Access) => boolean } =
  process.env['PASSWORD'] === undefined ? {} : { actions: true, authorize: (request) => isOperator(request, process.env['PASSWORD'] ?? '') }

function isOperator({ headers }: IncomingMessage, password: string): boolean {
  return headers.cookie?.split('; ').includes(`weir=${password}`) === true
}

export const port: number = Number(process.env['PORT'] ?? 3000)

export function say(bound: number): void {
  console.log(`The live page: http://127.0.0.1:${bound}/weir/`)
}
