import { randomBytes } from 'node:crypto'
import { createThrottler, memoryStore, type Throttler } from '@weir/core'
import { type DashboardOptions, password } from '@weir/dashboard'
import { redisStore } from '@weir/redis'

/** Makes the throttler. With REDIS_URL, all processes of these programs share the limits. */
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

/** The password to sign in: PASSWORD, or a new one for each start, which the program prints. */
const secret = process.env['PASSWORD'] || randomBytes(12).toString('base64url')
export const access: Pick<DashboardOptions, 'authorize' | 'actions'> = { authorize: password(secret), actions: true }

export const port: number = Number(process.env['PORT'] ?? 3000)

export function say(bound: number): void {
  console.log(`The dashboard: http://127.0.0.1:${bound}/weir/`)
  if (!process.env['PASSWORD']) console.log(`Its password, because PASSWORD is not set: ${secret}`)
}
