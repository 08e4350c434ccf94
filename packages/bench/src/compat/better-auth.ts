import { redisStorage } from '@better-auth/redis-storage'
import { betterAuthStorage } from '@weir/compat/better-auth'
import { betterAuth } from 'better-auth'
import type { Connections, Handles, Kind, Limit } from './limit.ts'

export async function auth(kind: Kind, { name, limit, interval }: Limit, { weir, redis }: Connections): Promise<Handles> {
  const own = {
    weir: () => ({ customStorage: betterAuthStorage(weir) }),
    redis: () => ({ storage: 'secondary-storage' as const }),
    memory: () => ({ storage: 'memory' as const }),
  }[kind]()
  const { handler } = betterAuth({
    // Its types are those of ioredis 5.
    ...(kind === 'redis' && { secondaryStorage: redisStorage({ client: redis as never, keyPrefix: `${name}:` }) }),
    rateLimit: { enabled: true, window: interval / 1000, max: limit, ...own },
    baseURL: 'http://localhost',
    secret: 'a secret of a benchmark, which signs nothing',
    telemetry: { enabled: false },
  })
  return async (ip) => {
    const { status } = await handler(new globalThis.Request('http://localhost/api/auth/ok', { headers: { 'x-forwarded-for': ip } }))
    if (status !== 200 && status !== 429) throw new Error(`better-auth answers ${status}`)
    return status === 200
  }
}
