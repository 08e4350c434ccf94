import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { type Costs, calendar, createThrottler, type Duration, tokenBucket, usageOf } from '@weir/core'
import { redisStore } from '@weir/redis'
import { answer, eventsOf, fail, listen, modelCallOf, priceOf, reject, tenantOf } from './calls.ts'

const { REDIS_URL = 'redis://127.0.0.1:6379', PROVIDER = 'http://127.0.0.1:4000', TTL = '5m', DOLLARS = '50' } = process.env
const throttler = createThrottler({
  store: redisStore(REDIS_URL),
  policies: [
    { name: 'requests', limit: 600, interval: '1m', algorithm: tokenBucket() },
    { name: 'tokens', limit: 2_000_000, interval: '1m', algorithm: tokenBucket() },
    // In micro-dollars, because sums of fractions are inexact. With 'central' the store settles the open calls of a killed gateway.
    { name: 'usd', limit: 1_000_000 * Number(DOLLARS), interval: calendar('month'), coordination: 'central', storeTimeout: '1s' },
  ],
}).start()
const costOf = usageOf('openai', ({ input, output, total }) => ({ tokens: total, usd: priceOf(input, output) }))

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const tenant = tenantOf(request)
  if (request.method === 'GET') return answer(response, 200, await throttler.usage(tenant))
  const { body, input, most } = await modelCallOf(request)
  const cost = { requests: 1, tokens: input + most, usd: priceOf(input, most) }
  const call = await throttler.reserveAsync(tenant, { cost, ttl: TTL as Duration })
  if (!call.allowed) return reject(response, call)
  let actual: Costs | undefined
  try {
    const stream = await fetch(PROVIDER, { method: 'POST', body }).catch(() => undefined)
    if (!stream?.ok) {
      // The provider charges nothing for a call that it rejects.
      call.cancel()
      return answer(response, stream?.status ?? 502)
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    await pipeline(async function* () {
      let output = 0
      for await (const event of eventsOf(stream)) {
        // About one token per event. The usage that the provider reports at the end replaces it.
        call.used({ tokens: input + ++output, usd: priceOf(input, output) })
        actual = costOf(event.value, call) ?? actual
        yield event.text
      }
    }, response)
  } finally {
    // If the client leaves before the usage comes, the last numbers of `used` count.
    call.settle(actual)
  }
}

listen(createServer((request, response) => void serve(request, response).catch((error) => fail(response, error))))
process.once('SIGTERM', () => void throttler.close().then(() => process.exit()))
