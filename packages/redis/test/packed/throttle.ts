// Run by packages/packed in empty projects of every kind, from the packed tarball, before a real server: a limit of 2
// meets two requests at one node and a third at a node that starts later.
import { createThrottler, type Throttler } from '@weir/core'
import { redisStore } from '@weir/redis'
import { Redis } from 'ioredis'

async function main(): Promise<void> {
  const template = new Redis(process.env['REDIS_URL'] ?? '', { lazyConnect: true })
  const node = (): Throttler =>
    createThrottler({ policies: [{ limit: 2, interval: '1h' }], store: redisStore(template, { namespace: `packed-${process.pid}` }) })
  const first = node()
  const outcomes = [first.check('ann'), first.check('ann')]
  await first.close()

  const second = node().start()
  const deadline = Date.now() + 10_000
  while (second.peek('ann').allowed && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  outcomes.push(second.check('ann'))
  console.log(outcomes.map(({ allowed }) => (allowed ? 'allowed' : 'refused')).join(' '))
  await second.close()
}

void main()
