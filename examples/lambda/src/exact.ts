import { createThrottler } from '@weir/core'
import { redisStore } from '@weir/redis'
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda'

// Redis decides each request, so the limit is exact, and nothing has to be sent before the function freezes.
const throttler = createThrottler({
  policies: [{ name: 'exact', limit: 10, interval: '1h', coordination: 'central', storeTimeout: '1s' }],
  store: redisStore(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'),
}).start()
throttler.on('storeDown', () => console.warn('Redis does not answer'))

export async function handler(event: APIGatewayProxyEventV2): Promise<APIGatewayProxyStructuredResultV2> {
  // An IPv6 client has many addresses. The key 'ip' of an adapter counts its network, as in app.ts. A user's id is better if you have one.
  const { allowed, retryAfterMs } = await throttler.checkAsync(event.requestContext.http.sourceIp)
  if (!allowed) return { statusCode: 429, headers: { 'Retry-After': `${Math.ceil(retryAfterMs / 1000)}` } }
  return { statusCode: 200, body: 'Hello from Lambda\n' }
}
