import assert from 'node:assert/strict'
import { createThrottler, memoryStore, tokenBucket } from '@weir/core'
import { paths } from '@weir/core/http'
import { type AdapterCase, type AdapterClient, contextOf } from './context.ts'

/** Allowed and rejected requests. */
export const limitCases: readonly AdapterCase[] = [
  {
    title: 'a request that passes two throttlers with the same rule, key and store is counted once',
    async run(context) {
      const store = memoryStore()
      const twice = { name: 'twice', ...context.limit(10), key: 'all' }
      const rule = { store, policies: [twice] }
      // A copy of the rule, so another object, and a second policy.
      const other = { store, policies: [{ ...twice }, { name: 'once', ...context.limit(5), key: 'all' }] }
      const client = await context.startWith([other, rule, rule])
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 200])
      const used = await client.throttlers[0]?.usage('all')
      assert.deepEqual(
        used?.map((one) => [one.policy, one.used, one.source]),
        [
          ['twice', 3, 'store'],
          ['once', 3, 'store'],
        ],
      )
      // A rule of the same name in another store counts separately.
      const apart = { store: memoryStore(), policies: [{ ...twice, limit: 1 }] }
      assert.deepEqual(await (await context.startWith([rule, apart])).statuses(['/', '/']), [200, 429])
    },
  },
  {
    title: 'an application that the same code makes again, e.g. by a hot reload, replaces the functions of the first, with one warning',
    async run(context) {
      const store = memoryStore()
      const clients: AdapterClient[] = []
      for (let i = 0; i < 3; i++) {
        const policies = [{ name: 'again', ...context.limit(10), key: (request: unknown) => context.readHeader('x-user')(request) ?? 'a' }]
        clients.push(await context.startWith([{ store, policies }]))
      }
      for (const client of clients) assert.deepEqual(await client.statuses(['/', '/']), [200, 200])
      const codes = clients.flatMap(({ warnings }) => warnings.map(({ code }) => code))
      assert.ok(codes.filter((code) => code === 'WEIR_WARN_POLICY_REPLACED').length <= 1, codes.join())
      assert.ok(!codes.includes('WEIR_WARN_RULES_DIFFER'), codes.join())
    },
  },
  {
    title: 'an application without policies does not start',
    async run(context) {
      await assert.rejects(context.startWith([{ ...context.base, policies: [] }]), {
        code: 'WEIR_INVALID_OPTION',
        message: /"policies" is \[\]/,
      })
    },
  },
  {
    title: 'lets in as many requests as the limit says, and rejects the next',
    async run(context) {
      const client = await context.start(context.limit(3))
      assert.deepEqual(await client.statuses(['/', '/', '/', '/', '/']), [200, 200, 200, 429, 429])
    },
  },
  {
    title: 'allows exactly the limit of many requests at once',
    async run(context) {
      const client = await context.start(context.limit(20))
      const answers = await Promise.all(Array.from({ length: 60 }, () => client.send('/')))
      assert.equal(answers.filter(({ status }) => status === 200).length, 20)
    },
  },
  {
    title: 'lets requests wait for quota, and never allows more than the limit at two nodes',
    needs: 'store',
    async run(context) {
      const leased = { ...context.limit(6), key: 'all', coordination: 'leased', failMode: 'closed' } as const
      const nodes = [await context.start(leased), await context.start(leased)]
      const statuses: number[] = []
      // Requests are rejected until the process has connected to the store, which may take long on a busy machine.
      for (let i = 0; i < 100 && !statuses.includes(200); i++) statuses.push((await (nodes[0] as AdapterClient).send('/')).status)
      for (let i = 0; i < 10; i++) for (const node of nodes) statuses.push((await node.send('/')).status)
      const allowed = statuses.filter((status) => status === 200).length
      // Fewer requests are allowed if the store answers late.
      assert.ok(allowed >= 1 && allowed <= 6, `${allowed} were let in`)
      assert.deepEqual(new Set(statuses), new Set([200, 429]))
    },
  },
  {
    title: 'checks all levels first: a request that one rejects costs nothing at the others',
    async run(context) {
      const client = await context.start({
        policies: [
          { name: 'all', ...context.limit(4), key: 'all' },
          { name: 'user', ...context.limit(1), key: context.readHeader('x-user') },
        ],
      })
      const as = (user: string) => client.send('/', { headers: { 'x-user': user } })
      assert.equal((await as('ann')).status, 200)
      for (let i = 0; i < 5; i++) assert.equal((await as('ann')).status, 429)
      for (const user of ['bob', 'cat', 'dan']) assert.equal((await as(user)).status, 200)
      const rejected = await as('eve')
      assert.equal(rejected.status, 429)
      assert.deepEqual(JSON.parse(rejected.body)['violated-policies'], ['all'])
    },
  },
  {
    title: 'tells the burst of a bucket, and what is left of it',
    async run(context) {
      const bucket = { ...context.limit(100), algorithm: tokenBucket({ burst: 2 }), coordination: 'local' }
      const client = await context.start({ name: 'user', ...bucket })
      const answers = [await client.send('/'), await client.send('/'), await client.send('/')]
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 429],
      )
      const [first, , third] = answers
      assert.match(String(first?.headers['ratelimit-policy']), /^"user";q=100;w=\d+;weir-burst=2$/)
      assert.match(String(first?.headers['ratelimit']), /^"user";r=1;t=\d+$/)
      // A hundredth of a year, give or take the time that the requests took.
      const wait = Number(third?.headers['retry-after'])
      assert.ok(Math.abs(wait - 315_360) < 60, `Retry-After: ${wait}`)
    },
  },
  {
    title: 'applies a policy to the methods and paths that it matches',
    async run(context) {
      const client = await context.start({ match: paths('POST /status/:code'), ...context.limit(1) })
      assert.deepEqual(await client.statuses(['/', '/', '/status/200', '/status/200']), [200, 200, 200, 200])
      assert.deepEqual(await client.statuses(['/status/200', '/status/201'], { method: 'POST' }), [200, 429])
    },
  },
  {
    title: 'counts the cost of a request',
    async run(context) {
      const client = await context.start({
        ...context.limit(10),
        key: 'all',
        cost: (request: unknown) => Number(context.readHeader('x-cost')(request)),
      })
      const costing = async (cost: number) => (await client.send('/', { headers: { 'x-cost': String(cost) } })).status
      assert.deepEqual([await costing(4), await costing(7), await costing(6), await costing(1)], [200, 429, 200, 429])
    },
  },
  {
    title: 'shares a throttler among applications',
    async run(context) {
      const throttler = createThrottler({ ...context.base, policies: [{ ...context.limit(3), key: 'all' as const }] })
      const one = await context.startWith([throttler])
      const other = await context.startWith([{ throttler, headers: 'legacy' }])
      assert.deepEqual(await one.statuses(['/', '/']), [200, 200])
      const answer = await other.send('/')
      assert.equal(answer.headers['x-ratelimit-remaining'], '0')
      assert.equal((await one.send('/')).status, 429)
    },
  },
  {
    title: 'counts a request once when one throttler stands in two places',
    async run(context) {
      const throttler = createThrottler({ ...context.base, policies: [context.limit(2)] })
      const client = await context.startWith([throttler, throttler])
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 429])
    },
  },
  {
    title: 'asks two throttlers in turn, and tells of both',
    async run(context) {
      const wide = { ...context.base, name: 'wide', ...context.limit(5), key: 'all' }
      const tight = { ...context.base, name: 'tight', ...context.limit(2), key: 'all' }
      const client = await context.startWith([wide, tight])
      const answer = await client.send('/')
      assert.match(String(answer.headers['ratelimit']), /^"wide";r=4;t=\d+, "tight";r=1;t=\d+$/)
      await client.send('/')
      const rejected = await client.send('/')
      assert.equal(rejected.status, 429)
      assert.match(String(rejected.headers['ratelimit']), /^"wide";r=2;t=\d+, "tight";r=0;t=\d+$/)
    },
  },
  {
    title: 'passes what skip, enabled and allow say, and rejects what deny says',
    async run(context) {
      let enabled = true
      const mark = context.readHeader('x-mark')
      const client = await context.start({
        ...context.limit(1),
        key: 'all',
        skip: (request: unknown) => mark(request) === 'skip',
        allow: (request: unknown) => mark(request) === 'friend',
        deny: (request: unknown) => mark(request) === 'foe',
        enabled: () => enabled,
      })
      const marked = (value: string) => client.statuses(['/', '/'], { headers: { 'x-mark': value } })
      assert.deepEqual(await marked('skip'), [200, 200])
      assert.deepEqual(await marked('friend'), [200, 200])
      assert.deepEqual(await marked('foe'), [403, 403])
      assert.deepEqual(await marked('other'), [200, 429])
      enabled = false
      assert.deepEqual(await marked('other'), [200, 200])
    },
  },
  {
    title: 'only reports in a dry run',
    async run(context) {
      const throttled: unknown[] = []
      const client = await context.start({
        ...context.limit(1),
        dryRun: true,
        onRejected: (_: unknown, decision: unknown) => throttled.push(decision),
      })
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 200])
      assert.equal(throttled.length, 2)
    },
  },
  {
    title: 'leaves the decision in the request context',
    async run(context) {
      const client = await context.start({ ...context.limit(9), name: 'here' })
      assert.deepEqual(contextOf(await client.send('/context')), { allowed: true, remaining: 8, policy: 'here' })
      const without = await context.start({ ...context.limit(9), enabled: () => false })
      assert.equal((await without.send('/context')).body, 'null')
    },
  },
  {
    title: 'counts and rejects a request to upgrade that the framework answers',
    async run(context) {
      const client = await context.start(context.limit(1))
      const headers = {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version': '13',
      }
      assert.deepEqual(await client.statuses(['/', '/'], { headers }), [200, 429])
    },
  },
]
