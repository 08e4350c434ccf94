import assert from 'node:assert/strict'
import { concurrency } from '@weir/core'
import { type AdapterCase, type AdapterClient, type AdapterContext, eventually } from './context.ts'
import { hang } from './in-flight.ts'

/** The remaining quota of the key that all requests share. */
function left({ throttlers }: AdapterClient, policy: string): number | undefined {
  return throttlers[0]?.peek('all').parts.find((part) => part.policy?.name === policy)?.remaining
}

function settled(client: AdapterClient, policy: string, remaining: number): Promise<void> {
  return eventually(() => left(client, policy) === remaining, `"${policy}" has ${remaining} left, not ${left(client, policy)}`)
}

/** A policy of 10 requests, and another one of 1,000 tokens. */
function budgets(context: AdapterContext): object[] {
  return [
    { name: 'requests', ...context.limit(10), key: 'all' },
    { name: 'tokens', ...context.limit(1_000), key: 'all' },
  ]
}

const estimate = () => ({ requests: 1, tokens: 600 })

/** Costs by policy name, and units that are reserved until the response has ended. */
export const reservingCases: readonly AdapterCase[] = [
  {
    title: 'counts costs by name at the policies that they name, and at no other',
    async run(context) {
      const cost = () => ({ requests: 1, tokens: 400 })
      const policies = [...budgets(context), { name: 'other', ...context.limit(5), key: 'all' }].map((policy) => ({ ...policy, cost }))
      const client = await context.start({ policies })
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 429])
      assert.deepEqual(
        ['requests', 'tokens', 'other'].map((name) => left(client, name)),
        [8, 200, 5],
      )
      const { headers } = await client.send('/')
      assert.match(String(headers['ratelimit-policy']), /^"requests";q=10;w=\d+, "tokens";q=1000;w=\d+$/)
      assert.deepEqual(client.warnings, [])
    },
  },
  {
    title: 'reserves an estimate, and counts the real use after a streamed response',
    async run(context) {
      const statuses: number[] = []
      const settle = async (...args: unknown[]) => {
        statuses.push(context.adapter.status(args))
        return { tokens: 720 }
      }
      const client = await context.start({ policies: budgets(context), estimate, settle })
      const { body, headers } = await client.send('/stream')
      assert.equal(body, 'onetwothree')
      assert.match(String(headers['ratelimit']), /"tokens";r=400/)
      await settled(client, 'tokens', 280)
      assert.equal((await client.send('/stream')).status, 429)
      assert.deepEqual([left(client, 'requests'), left(client, 'tokens')], [9, 280])
      assert.deepEqual(statuses, [200])
      assert.deepEqual(client.warnings, [])
    },
  },
  {
    title: 'counts the use that a handler has reported, and in full if it has reported none',
    async run(context) {
      const client = await context.start({ policies: budgets(context), estimate, settle: () => undefined })
      await client.send('/stream')
      await settled(client, 'tokens', 989)
      await client.send('/')
      await settled(client, 'tokens', 389)
      assert.equal(left(client, 'requests'), 8)
    },
  },
  {
    title: 'keeps a reservation while the response streams, and returns no streamed units to a client that disconnects',
    async run(context) {
      let calls = 0
      const client = await context.start({ policies: budgets(context), estimate, settle: () => void calls++ })
      const { leave } = await hang(client)
      assert.equal((await client.send('/')).status, 429)
      assert.deepEqual([left(client, 'tokens'), calls], [400, 0])
      leave()
      await settled(client, 'tokens', 996)
      assert.deepEqual([left(client, 'requests'), calls], [9, 1])
    },
  },
  {
    title: 'settles the reservation of a handler that fails',
    async run(context) {
      const client = await context.start({ policies: budgets(context), estimate: () => ({ requests: 1, tokens: 100 }) })
      assert.deepEqual(await client.statuses(['/throw', '/status/500', '/status/404']), [418, 500, 404])
      await settled(client, 'tokens', 700)
      assert.equal(left(client, 'requests'), 7)
      assert.deepEqual(client.warnings, [])
    },
  },
  {
    title: 'frees the slot of a reservation once',
    async run(context) {
      const flight = { name: 'flight', key: 'all', limit: 3, algorithm: concurrency(), coordination: 'local' }
      const client = await context.start({ policies: [...budgets(context), flight], estimate: () => ({ tokens: 100, flight: 1 }) })
      const first = await hang(client)
      const second = await hang(client)
      assert.equal(left(client, 'flight'), 1)
      first.leave()
      await settled(client, 'flight', 2)
      for (const path of ['/', '/stream', '/throw']) await client.send(path)
      await settled(client, 'flight', 2)
      second.leave()
      await settled(client, 'flight', 3)
      // Three requests with 4, 4 and 11 reported tokens, and two without.
      await settled(client, 'tokens', 781)
      assert.equal(left(client, 'requests'), 10)
    },
  },
  {
    title: 'reserves a request once that passes several places',
    async run(context) {
      let calls = 0
      const own = await context.start({ policies: budgets(context) })
      const options = { throttler: own.throttlers[0] as object, estimate, settle: () => void calls++ }
      const client = await context.startWith([options, options])
      await client.send('/')
      await settled(client, 'tokens', 400)
      await eventually(() => calls > 0, 'it is settled')
      assert.deepEqual([left(client, 'requests'), calls], [9, 1])
    },
  },
  {
    title: 'keeps a reservation until the handler has ended, even if its client has left',
    needs: 'handlerEnd',
    async run(context) {
      let ended = false
      const settle = () => ({ tokens: ended ? 50 : 1 })
      const client = await context.start({ policies: budgets(context), estimate, settle })
      const request = client.open('/work')
      request.on('error', () => {})
      request.end()
      await eventually(() => context.work.running === 1, 'the handler runs')
      request.destroy()
      await eventually(async () => (await client.connections()) === 0, 'the client has left')
      assert.equal(left(client, 'tokens'), 400)
      ended = true
      context.work.end()
      await settled(client, 'tokens', 950)
    },
  },
]
