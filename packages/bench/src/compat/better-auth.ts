import { betterAuthStorage } from '@weir/compat/better-auth'
import { betterAuth } from 'better-auth'
import type { Connections, Handles, Kind, Limit } from './limit.ts'

/** The package has no client of Redis, so it has two kinds of stores. */
export async function auth(kind: Kind, { limit, interval }: Limit, { weir }: Connections): Promise<Handles> {
  const own = kind === 'weir' ? { customStorage: betterAuthStorage(weir) } : { storage: 'memory' as const }
  const { handler } = betterAuth({
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
