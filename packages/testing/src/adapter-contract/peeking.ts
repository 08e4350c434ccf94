import assert from 'node:assert/strict'
import { concurrency, type Decision } from '@weir/core'
import type { AdapterCase, AdapterClient } from './context.ts'

/** The answer of `GET /peek`. */
interface Peeked {
  readonly allowed: boolean
  readonly remaining: number
  readonly reason: string
  readonly dryRun: boolean
}

/** Makes the answer of `GET /peek`: the last of three decisions, because a peek must not change the next one. */
export async function peekThrice(peek: () => Promise<Decision | undefined>): Promise<Peeked | null> {
  await peek()
  await peek()
  const decision = await peek()
  if (decision === undefined) return null
  const { allowed, remaining, reason, dryRun } = decision
  return { allowed, remaining, reason, dryRun }
}

/** Returns the third decision that a handler gets from `peek`, or null if the request would pass uncounted. */
async function peek(client: AdapterClient, headers: Record<string, string> = {}): Promise<Peeked | null> {
  const { status, body } = await client.send('/peek', { headers })
  assert.equal(status, 200)
  return JSON.parse(body)
}

const ALLOWED = { allowed: true, reason: 'ok', dryRun: false }
const REJECTED = { allowed: false, remaining: 0, reason: 'limit', dryRun: false }

/** The decision about a request without counting it. */
export const peekCases: readonly AdapterCase[] = [
  {
    title: 'peeks: shows how a request would be decided, and counts nothing',
    async run(context) {
      let rejections = 0
      const onRejected = () => void rejections++
      const client = await context.start({ ...context.limit(3), key: 'all', coordination: 'local', onRejected })
      assert.deepEqual(await peek(client), { ...ALLOWED, remaining: 2 })
      assert.deepEqual(await peek(client), { ...ALLOWED, remaining: 1 })
      assert.deepEqual(await peek(client), REJECTED)
      assert.equal(rejections, 0)
      assert.equal((await client.send('/peek')).status, 429)
      assert.equal(rejections, 1)
    },
  },
  {
    title: 'peeks by all policies, their costs, their limits and functions that answer later',
    async run(context) {
      const later = <T>(value: T) => Promise.resolve(value)
      const client = await context.start({
        policies: [
          { ...context.limit(9), name: 'one', key: () => later('one'), cost: () => later(2), coordination: 'local' },
          { ...context.limit(9), name: 'two', key: 'all', limit: () => later(5), fallbackLimit: 9, coordination: 'local' },
          { name: 'flight', limit: 2, key: 'all', algorithm: concurrency(), coordination: 'local' },
        ],
        skip: (request: unknown) => later(context.readHeader('x-skip')(request) === 'yes'),
      })
      assert.deepEqual(await peek(client), { ...ALLOWED, remaining: 1 })
      assert.equal(await peek(client, { 'x-skip': 'yes' }), null)
      for (const remaining of [5, 3]) {
        await client.send('/')
        assert.equal(client.throttlers[0]?.peek('one').parts[0]?.remaining, remaining)
      }
      assert.deepEqual(await peek(client), { ...REJECTED, remaining: 1 })
    },
  },
  {
    title: 'peeks at requests that the options let past or reject, and in a dry run',
    async run(context) {
      const asks = (name: string) => (request: unknown) => context.readHeader(name)(request) !== undefined
      const one = { ...context.limit(1), key: 'all', coordination: 'local' }
      // The first call is the middleware's. It must allow the request, so that the handler can peek.
      let denied = false
      const deny = (request: unknown) => asks('x-deny')(request) && (denied || !(denied = true))
      const client = await context.start({ ...one, allow: asks('x-allow'), deny })
      assert.equal(await peek(client, { 'x-allow': 'yes' }), null)
      assert.deepEqual(await peek(client, { 'x-deny': 'yes' }), { allowed: false, remaining: 0, reason: 'denied', dryRun: false })
      const dry = await context.start({ ...one, dryRun: true })
      assert.deepEqual(await peek(dry), { allowed: true, remaining: 0, reason: 'limit', dryRun: true })
    },
  },
  {
    title: 'peeks at keys that nobody counts without keeping them, and survives functions that fail',
    async run(context) {
      const keys = ['a', 'b', 'c', 'd', 'e']
      const client = await context.start({
        ...context.limit(2),
        key: () => {
          const key = keys.shift()
          if (key === undefined) throw new Error('No key is left.')
          return key
        },
        maxKeys: 2,
        overflow: 'reject',
        coordination: 'local',
      })
      assert.deepEqual(await peek(client), { ...ALLOWED, remaining: 2 })
      assert.deepEqual(keys, ['e'])
      assert.equal((await client.send('/')).status, 200)
      const { status } = await client.send('/peek')
      assert.ok(status === 200 || status === 429, `${status}`)
    },
  },
  ...(['central', 'leased'] as const).map(
    (coordination): AdapterCase => ({
      title: `peeks without a question to the store, with coordination "${coordination}"`,
      needs: 'store',
      async run(context) {
        const client = await context.start({ ...context.limit(3), key: 'all', coordination, storeTimeout: '30s' })
        const before = await peek(client)
        assert.equal(before?.allowed, true)
        const [usage] = (await client.throttlers[0]?.usage('all')) ?? []
        assert.equal(usage?.used, 1)
        await peek(client)
        await peek(client)
        const [after] = (await client.throttlers[0]?.usage('all')) ?? []
        assert.equal(after?.used, 3)
        assert.equal((await client.send('/peek')).status, 429)
      },
    }),
  ),
]
