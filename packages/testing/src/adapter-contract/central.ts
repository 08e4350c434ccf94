import assert from 'node:assert/strict'
import { fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import type { AdapterCase, AdapterContext, Answer } from './context.ts'

/** A long timeout. A store on a busy machine may answer late, and Weir would then decide without it. */
const PATIENT = '30s'

const CENTRAL = { coordination: 'central', key: 'all' } as const

/** Every algorithm that a store can decide, and the end of its item in `RateLimit-Policy`. */
const ALGORITHMS = [
  { name: 'fixed windows', algorithm: fixedWindow(), tells: 'q=3;w=2' },
  { name: 'windows from the first request', algorithm: fixedWindow({ start: 'first-request' }), tells: 'q=3;w=2' },
  { name: 'a sliding window', algorithm: slidingWindow(), tells: 'q=3;w=2' },
  { name: 'the two-window counter', algorithm: slidingCounter(), tells: 'q=3;w=2' },
  { name: 'a sliding log', algorithm: slidingLog(), tells: 'q=3;w=2' },
  { name: 'a token bucket', algorithm: tokenBucket({ burst: 2 }), tells: 'q=3;w=2;weir-burst=2' },
  { name: 'a bucket that warms up', algorithm: tokenBucket({ burst: 2, warmUp: '4s' }), tells: 'q=3;w=2;weir-burst=2' },
  { name: 'a leaky bucket', algorithm: leakyBucket({ burst: 2, immediate: 2 }), tells: 'q=3;w=2;weir-burst=2' },
] as const

/** Starts applications that share the store of the case. */
async function started(context: AdapterContext, options: object, count: number) {
  const clients = []
  for (let i = 0; i < count; i++) clients.push(await context.start({ storeTimeout: PATIENT, ...options }))
  // No wait is needed here, because the first request waits for the connection.
  return clients
}

/** Requests that the store decides (`coordination: 'central'`). */
export const centralCases: readonly AdapterCase[] = [
  ...ALGORITHMS.map(
    ({ name, algorithm, tells }): AdapterCase => ({
      title: `waits for the store, which decides by ${name}, and tells clients what it says`,
      needs: 'store',
      async run(context) {
        const [client] = await started(context, { ...CENTRAL, name: 'user', algorithm, limit: 3, interval: '2s' }, 1)
        assert.ok(client)
        const first = await client.send('/')
        assert.equal(first.status, 200)
        assert.equal(first.headers['ratelimit-policy'], `"user";${tells}`)
        assert.match(String(first.headers['ratelimit']), /^"user";r=[0-3](;t=\d)?$/)
        let rejected: Answer | undefined
        for (let i = 0; i < 20 && rejected?.status !== 429; i++) rejected = await client.send('/')
        assert.equal(rejected?.status, 429)
        const wait = Number(rejected?.headers['retry-after'])
        assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= 12, `Retry-After: ${wait}`)
        await context.pass(wait * 1000)
        assert.equal((await client.send('/')).status, 200)
      },
    }),
  ),
  {
    title: 'never lets in one too many at several nodes where the store decides',
    needs: 'store',
    async run(context) {
      const clients = await started(context, { ...CENTRAL, ...context.limit(20) }, 3)
      const answers = await Promise.all(clients.flatMap((client) => Array.from({ length: 10 }, () => client.send('/'))))
      assert.equal(answers.filter(({ status }) => status === 200).length, 20)
      assert.equal(answers.filter(({ status }) => status === 429).length, 10)
    },
  },
  {
    title: 'gives back what other levels counted when the store rejects, and asks it nothing when they reject',
    needs: 'store',
    async run(context) {
      const policies = [
        { name: 'here', ...context.limit(2), key: context.readHeader('x-user'), coordination: 'local' },
        { name: 'store', ...context.limit(3), key: 'all', coordination: 'central' },
      ]
      const client = await context.start({
        policies: policies.map((policy) => ({ ...policy, ...(policy.key === 'all' && { storeTimeout: PATIENT }) })),
      })
      const as = async (user: string) => (await client.send('/', { headers: { 'x-user': user } })).status
      assert.deepEqual([await as('ann'), await as('ann'), await as('ann')], [200, 200, 429])
      assert.deepEqual([await as('bob'), await as('bob')], [200, 429])
      const [throttler] = client.throttlers
      assert.deepEqual(
        (await throttler?.usage('bob'))?.map(({ used }) => used),
        [1, 3],
      )
    },
  },
  {
    title: 'makes no request wait for a policy that only watches, and counts what the store would have rejected',
    needs: 'store',
    async run(context) {
      const [client] = await started(context, { ...CENTRAL, ...context.limit(2), dryRun: true }, 1)
      assert.ok(client)
      assert.deepEqual(await client.statuses(['/', '/', '/', '/']), [200, 200, 200, 200])
    },
  },
]
