import { redisStore } from '@weir/redis'
import { forwardedAddress, memoryStore, throttle } from '@weir/web'
import { type NextRequest, NextResponse } from 'next/server'

// Each address may send 20 requests per hour to the other routes of the API.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()
const limit = throttle({ name: 'api', key: 'ip', limit: 20, interval: '1h', store, address: forwardedAddress(1) })

export async function proxy(request: NextRequest): Promise<Response> {
  const rejection = await limit.rejection(request)
  if (rejection) return rejection
  return NextResponse.next({ headers: limit.headers(request) })
}

// Next.js would send the limit fields of the proxy instead of those of a route handler, so the proxy leaves out a route with its own limit.
export const config = { matcher: '/api/((?!create$).*)' }
