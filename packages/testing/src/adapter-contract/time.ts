import assert from 'node:assert/strict'
import { escalating, fixedWindow, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import type { AdapterCase, AdapterClient, Answer } from './context.ts'

/** A short interval, because with a store real time must pass. */
const SHORT = { limit: 3, interval: '2s' } as const

/** Sends requests until one is rejected. More than the limit may be needed, because an interval may end meanwhile. */
async function rejected(client: AdapterClient): Promise<Answer> {
  for (let i = 0; i < 20; i++) {
    const answer = await client.send('/')
    if (answer.status === 429) return answer
  }
  throw new Error('No request was rejected.')
}

/** A request that is sent after the time in `Retry-After` is allowed. */
export const timeCases: readonly AdapterCase[] = [
  { name: 'a fixed window', options: {} },
  { name: 'a sliding window', options: { algorithm: slidingWindow() } },
  { name: 'a window in a hundred spans', options: { algorithm: slidingWindow(), spans: 100 } },
  { name: 'a window from the first request', options: { algorithm: fixedWindow({ start: 'first-request' }), coordination: 'local' } },
  { name: 'a token bucket', options: { algorithm: tokenBucket({ burst: 2 }), coordination: 'local' } },
  { name: 'a bucket that warms up', options: { algorithm: tokenBucket({ burst: 2, warmUp: '4s' }), coordination: 'local' } },
  { name: 'a leaky bucket', options: { algorithm: leakyBucket({ burst: 2, immediate: 2 }), coordination: 'local' } },
  { name: 'a sliding log', options: { algorithm: slidingLog(), coordination: 'local' } },
  { name: 'a cooldown', options: { cooldown: '2s' } },
  { name: 'a cooldown that grows', options: { cooldown: escalating({ base: '1s', factor: 2, max: '8s' }) } },
  { name: 'counts exchanged at the ends of spans', options: { coordination: 'periodic' }, needs: 'store' as const },
].map(
  ({ name, options, ...needs }): AdapterCase => ({
    title: `lets in the only client of a key that waits as Retry-After says, with ${name}`,
    ...needs,
    async run(context) {
      const client = await context.start({ ...SHORT, ...options, key: 'all' })
      // Intervals follow the store's clock, which its first replies contain. The very first reply takes as long as connecting.
      await client.send('/')
      await context.pass(500)
      for (let turn = 0; turn < 2; turn++) {
        const { headers } = await rejected(client)
        const wait = Number(headers['retry-after'])
        assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= 20, `Retry-After: ${headers['retry-after']}`)
        await context.pass(wait * 1000)
        let next = await client.send('/')
        // A process estimates the store's clock within half a round trip, which is long on a busy machine. Later replies correct
        // it.
        for (let correction = 0; correction < 3 && context.realTime && next.status === 429; correction++) {
          await context.pass(Number(next.headers['retry-after']) * 1000)
          next = await client.send('/')
        }
        assert.equal(next.status, 200)
      }
    },
  }),
)
