// The program that packages/acceptance runs in empty projects of every kind, from the packed tarball. It sends three requests to a limit
// of 2, through each store.
import rateLimit from '@fastify/rate-limit'
import { ThrottlerModule } from '@nestjs/throttler'
import { betterAuthStorage } from '@weir/compat/better-auth'
import { expressRateLimitStore } from '@weir/compat/express-rate-limit'
import { fastifyRateLimitStore } from '@weir/compat/fastify-rate-limit'
import { nestThrottlerStorage } from '@weir/compat/nestjs-throttler'
import { memoryStore } from '@weir/core'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import Fastify from 'fastify'

const HOUR = 3_600_000

async function main(): Promise<void> {
  const store = expressRateLimitStore(memoryStore())
  expressRateLimit({ windowMs: HOUR, limit: 2, store })
  const app = Fastify()
  await app.register(rateLimit, { max: 2, timeWindow: HOUR, store: fastifyRateLimitStore(memoryStore()) })
  app.get('/', () => 'hello')
  const storage = nestThrottlerStorage(memoryStore())
  ThrottlerModule.forRoot({ throttlers: [{ ttl: HOUR, limit: 2 }], storage })
  const auth = betterAuthStorage(memoryStore())

  const outcomes: string[] = []
  for (let request = 0; request < 3; request++) {
    const allowed = [
      store.increment('k').totalHits <= 2,
      (await app.inject('/')).statusCode === 200,
      !(await storage.increment('k', HOUR, 2, HOUR, 'default')).isBlocked,
      (await auth.consume('k', { window: HOUR / 1000, max: 2 })).allowed,
    ]
    const [first] = allowed
    outcomes.push(allowed.some((one) => one !== first) ? `different: ${allowed.join(' ')}` : first ? 'allowed' : 'rejected')
  }
  await app.close()
  console.log(outcomes.join(' '))
}

void main()
