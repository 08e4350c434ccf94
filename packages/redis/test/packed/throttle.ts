// Run by packages/acceptance in empty projects of every kind, from the packed tarball, against a real server. With a limit of 2, one
// process allows two requests, and a process that starts later, with another client library, gets a third.
import { createThrottler, type Store, type Throttler } from '@weir/core'
import { redisStore } from '@weir/redis'
import { redisStore as nodeRedisStore } from '@weir/redis/node-redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'

async function main(): Promise<void> {
  const url = process.env['REDIS_URL'] ?? ''
  const namespace = `packed-${process.pid}`
  const node = (store: Store): Throttler => createThrottler({ policies: [{ limit: 2, interval: '1h' }], closeTimeout: '10s', store })
  const first = node(redisStore(new Redis(url, { lazyConnect: true }), { namespace }))
  const outcomes = [first.check('ann'), first.check('ann')]
  await first.close()

  const second = node(nodeRedisStore(createClient({ url }), { namespace })).start()
  const deadline = Date.now() + 10_000
  while (second.peek('ann').allowed && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  outcomes.push(second.check('ann'))
  console.log(outcomes.map(({ allowed }) => (allowed ? 'allowed' : 'rejected')).join(' '))
  await second.close()
}

void main()
