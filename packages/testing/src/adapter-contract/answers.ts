import assert from 'node:assert/strict'
import type { AdapterCase } from './context.ts'

const POLICY = /^"default";q=\d+;w=\d+$/
const LIMIT = /^"default";r=\d+;t=\d+$/

/** The texts and fields that clients receive. */
export const answerCases: readonly AdapterCase[] = [
  {
    title: 'tells every answer what is left',
    async run(context) {
      const client = await context.start(context.limit(3))
      for (const left of [2, 1, 0, 0]) {
        const { headers } = await client.send('/')
        assert.match(String(headers['ratelimit-policy']), POLICY)
        assert.match(String(headers['ratelimit']), LIMIT)
        assert.match(String(headers['ratelimit']), new RegExp(`;r=${left};`))
        assert.equal(headers['x-ratelimit-limit'], undefined)
      }
    },
  },
  {
    title: 'tells in the fields that were asked for',
    async run(context) {
      const fields = async (headers: unknown) =>
        Object.keys((await (await context.start({ ...context.limit(3), headers })).send('/')).headers)
          .filter((name) => name.includes('ratelimit'))
          .sort()
      const draft = ['ratelimit', 'ratelimit-policy']
      const legacy = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
      assert.deepEqual(await fields('draft-11'), draft)
      assert.deepEqual(await fields('draft-7'), draft)
      assert.deepEqual(await fields('draft-6'), ['ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining', 'ratelimit-reset'])
      assert.deepEqual(await fields('legacy'), legacy)
      assert.deepEqual(await fields('legacy-unix'), legacy)
      assert.deepEqual(await fields(['draft-11', 'legacy']), [...draft, ...legacy])
      assert.deepEqual(await fields(false), [])
    },
  },
  {
    title: 'tells clients of older drafts what they read',
    async run(context) {
      const seventh = await context.start({ ...context.limit(1), name: 'seventh', headers: 'draft-7' })
      const sixth = await context.start({ ...context.limit(1), name: 'sixth', headers: ['draft-6', 'legacy-unix'] })
      for (const [left, status] of [
        [0, 200],
        [0, 429],
      ]) {
        const one = await seventh.send('/')
        assert.equal(one.status, status)
        assert.match(String(one.headers['ratelimit-policy']), /^1;w=\d+$/)
        assert.match(String(one.headers['ratelimit']), new RegExp(`^limit=1, remaining=${left}, reset=\\d+$`))
        const other = await sixth.send('/')
        assert.equal(other.status, status)
        assert.deepEqual([other.headers['ratelimit-limit'], other.headers['ratelimit-remaining']], ['1', '0'])
        assert.match(String(other.headers['ratelimit-reset']), /^\d+$/)
        const [fromNow, at] = [Number(other.headers['ratelimit-reset']), Number(other.headers['x-ratelimit-reset'])]
        // One header is a moment and the other is a time from now, so their difference is a Unix time.
        assert.ok(at - fromNow > 1_000_000, `${at} is no Unix time`)
      }
    },
  },
  {
    title: 'leaves Retry-After out where it is not wanted',
    async run(context) {
      for (const [options, told] of [
        [{ headers: false }, true],
        [{ headers: false, sendRetryAfter: false }, false],
        [{ sendRetryAfter: false }, false],
      ] as const) {
        const client = await context.start({ ...context.limit(1), ...options })
        await client.send('/')
        const { status, headers, body } = await client.send('/')
        assert.equal(status, 429)
        assert.equal(headers['retry-after'] !== undefined, told)
        assert.match(body, /Try again in \d+ second/)
      }
    },
  },
  {
    title: 'rejects with problem details that name the policy',
    async run(context) {
      const client = await context.start({ ...context.limit(1), name: 'mine' })
      await client.send('/')
      const { status, headers, body } = await client.send('/')
      assert.equal(status, 429)
      assert.match(String(headers['content-type']), /^application\/problem\+json/)
      assert.match(String(headers['retry-after']), /^[1-9]\d*$/)
      assert.equal(headers['cache-control'], 'no-store')
      assert.match(String(headers['ratelimit']), /^"mine";r=0;t=\d+$/)
      const details = JSON.parse(body)
      assert.equal(details.type, 'https://iana.org/assignments/http-problem-types#quota-exceeded')
      assert.equal(details.status, 429)
      assert.deepEqual(details['violated-policies'], ['mine'])
      assert.ok(details.title && details.detail)
    },
  },
  {
    title: 'rejects in the form that the client accepts',
    async run(context) {
      const client = await context.start(context.limit(1))
      await client.send('/')
      const typeFor = async (Accept: string) =>
        String((await client.send('/', { headers: { Accept } })).headers['content-type']).split(';')[0]
      assert.equal(await typeFor('*/*'), 'application/problem+json')
      assert.equal(await typeFor('application/json'), 'application/problem+json')
      assert.equal(await typeFor('text/html,application/xhtml+xml,*/*;q=0.8'), 'text/html')
      assert.equal(await typeFor('text/plain'), 'text/plain')
      assert.equal(await typeFor('image/png'), 'text/plain')
      assert.equal(await typeFor(`${'a/b,'.repeat(500)};;q=`), 'text/plain')
    },
  },
  {
    title: 'rejects with the message and status of the options',
    async run(context) {
      const rejection = async (options: object) => {
        const client = await context.start({ ...context.limit(1), ...options })
        await client.send('/')
        const { status, headers, body } = await client.send('/')
        assert.ok(headers['retry-after'])
        return [status, String(headers['content-type']).split(';')[0], body]
      }
      assert.deepEqual(await rejection({ message: 'Slow down' }), [429, 'text/plain', 'Slow down'])
      assert.deepEqual(await rejection({ message: { error: 'slow' } }), [429, 'application/json', '{"error":"slow"}'])
      assert.deepEqual(await rejection({ message: (_: unknown, { limit }: { limit: number }) => `at most ${limit}`, statusCode: 503 }), [
        503,
        'text/plain',
        'at most 1',
      ])
    },
  },
  {
    title: 'leaves the answer to a handler, with status and headers set',
    async run(context) {
      const client = await context.start({ ...context.limit(1), handler: context.adapter.answering('my own words') })
      await client.send('/')
      const { status, headers, body } = await client.send('/')
      assert.deepEqual([status, body], [429, 'my own words'])
      assert.ok(headers['retry-after'])
    },
  },
  {
    title: 'rejects by itself when a handler throws',
    async run(context) {
      const client = await context.start({
        ...context.limit(1),
        handler: () => {
          throw new Error('boom')
        },
      })
      await client.send('/')
      const { status, body } = await client.send('/')
      assert.equal(status, 429)
      assert.match(body, /quota-exceeded/)
      assert.equal(client.warnings.length, 1)
    },
  },
  {
    title: 'hands a rejection to the framework as an error, with status and headers',
    async run(context) {
      const client = await context.start({ ...context.limit(1), throwOnReject: true })
      await client.send('/')
      const { status, headers, body } = await client.send('/')
      assert.equal(status, 429)
      assert.match(String(headers['retry-after']), /^[1-9]\d*$/)
      assert.match(String(headers['ratelimit']), LIMIT)
      assert.doesNotMatch(body, /quota-exceeded/)
    },
  },
  {
    title: 'keeps the fields on an answer to an error',
    async run(context) {
      const client = await context.start(context.limit(3))
      const { status, headers } = await client.send('/throw')
      assert.equal(status, 418)
      assert.match(String(headers['ratelimit']), LIMIT)
      assert.match(String(headers['ratelimit-policy']), POLICY)
    },
  },
  {
    title: 'leaves a streamed answer alone',
    async run(context) {
      const client = await context.start(context.limit(3))
      const { status, headers, body } = await client.send('/stream')
      assert.deepEqual([status, body], [200, 'onetwothree'])
      assert.match(String(headers['ratelimit']), LIMIT)
    },
  },
]
