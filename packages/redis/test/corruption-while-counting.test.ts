import { calendar, createThrottler, fixedWindow, slidingWindow, type Throttler, tokenBucket, type WeirError } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import type { Ordinal, StorePolicy } from '@weir/core/sync'
import { TestNode } from '@weir/testing/store-tests/test-node'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

const WIDTH = 86_400_000_000
const RUNNING = Math.floor(Date.now() / WIDTH)
const POLICIES: readonly StorePolicy[] = [
  { id: 'fixed', width: WIDTH, cells: 1, limit: 20, hot: 5, ttl: WIDTH },
  { id: 'sliding', width: WIDTH, cells: 4, limit: 20, hot: 5, ttl: 8 * WIDTH },
]
const KEYS = ['x', 'y:1', '__proto__', 'z'.repeat(300)]

/** Values that the scripts can't mistake for valid ones. No test can detect a false value that is valid. */
const junk = fc.oneof(
  fc.constantFrom('', 'junk', 'inf', 'nan', '1e308', '-1e308', '0'.repeat(40), '5', '\u0000\u001b'),
  fc.string({ unit: 'binary' }).map((text) => `!${text}`),
)
const corruption = fc.record({
  which: fc.nat(),
  how: fc.constantFrom('string', 'hash', 'list', 'set', 'sorted set', 'stream', 'member', 'gone', 'for ever'),
  text: junk,
  score: fc.constantFrom('+inf', '-inf', '1e300', '0.5'),
})
type Corruption = typeof corruption extends fc.Arbitrary<infer T> ? T : never

/** Corrupts a value, and returns the name of its key. */
async function corrupt(namespace: string, { which, how, text, score }: Corruption): Promise<string | undefined> {
  const keys = (await here.admin.keys(`${namespace}:*`)).sort()
  const key = keys[which % keys.length]
  if (key === undefined) return undefined
  if (how === 'for ever') await here.admin.persist(key)
  else if (how !== 'member') await here.admin.del(key)
  if (how === 'string') await here.admin.set(key, text)
  else if (how === 'hash') await here.admin.hset(key, 'field', text)
  else if (how === 'list') await here.admin.rpush(key, text)
  else if (how === 'set') await here.admin.sadd(key, text)
  else if (how === 'sorted set') await here.admin.zadd(key, score, text)
  else if (how === 'stream') await here.admin.xadd(key, '*', 'field', text)
  else if (how === 'member') {
    const type = await here.admin.type(key)
    if (type === 'zset') {
      const members = await here.admin.zrangebyscore(key, '-inf', '+inf')
      await here.admin.zadd(key, score, text, score, members[which % members.length] ?? text)
    } else if (type === 'hash') {
      const fields = await here.admin.hkeys(key)
      await here.admin.hset(key, text, text, fields[which % fields.length] ?? text, text)
    } else await here.admin.set(key, text)
  }
  return key
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ node: fc.nat(2), key: fc.nat(KEYS.length - 1), policy: fc.nat(1), units: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ node: fc.nat(2), block: fc.constantFrom('exceeded', 'set', 'restore', 'lift'), key: fc.nat(KEYS.length - 1) }),
  },
  { weight: 2, arbitrary: fc.record({ node: fc.nat(2), beat: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ corruption }) },
)

test('random values of a live store are corrupted while three nodes count: none fails, and totals are whole again', {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const namespace = freshNamespace()
      const store = redisStore(here.server.url, { ...PATIENT, namespace })
      const nodes = [new TestNode(store), new TestNode(store), new TestNode(store)]
      const corrupted = new Map<string, number>()
      const taken = nodes.map(() => POLICIES.map(() => KEYS.map(() => 0)))
      const cursors: (string | undefined)[] = []
      const heartbeat = (node: number) => ({
        ttl: 600_000,
        cursor: cursors[node],
        policies: POLICIES,
        status: 'fine',
        watch: true as const,
      })
      const entry = (node: number, policy: number, key: number) => ({
        policy: POLICIES[policy] as StorePolicy,
        key: KEYS[key] as string,
        cells: [{ ordinal: RUNNING as Ordinal, taken: taken[node]?.[policy]?.[key] ?? 0, given: 0 }],
      })
      try {
        for (const one of steps) {
          if ('corruption' in one) {
            const key = await corrupt(namespace, one.corruption)
            if (key !== undefined) corrupted.set(key, (corrupted.get(key) ?? 0) + 1)
            continue
          }
          const { connection } = nodes[one.node] as TestNode
          if ('units' in one) {
            const counts = taken[one.node]?.[one.policy] as number[]
            counts[one.key] = (counts[one.key] as number) + one.units
            const { results } = await connection.sync({ entries: [entry(one.node, one.policy, one.key)], blocks: [] })
            const own = results[0]?.cells.find(({ ordinal }) => ordinal === RUNNING)?.taken
            // No process counts for more than its own units, and a process's own units are always included.
            const most = nodes.reduce((sum, _, node) => sum + (taken[node]?.[one.policy]?.[one.key] ?? 0), 0)
            expect(own).toBeGreaterThanOrEqual(counts[one.key] as number)
            expect(own).toBeLessThanOrEqual(most)
          } else if ('block' in one) {
            const change = { policy: POLICIES[0] as StorePolicy, key: KEYS[one.key] as string, kind: one.block, remaining: 60_000 } as const
            const { blocks } = await connection.sync({
              entries: [],
              blocks: [{ ...change, growth: { factor: 2, max: 120_000, memory: 60_000 } }],
            })
            expect(blocks[0]).toBeGreaterThanOrEqual(0)
            expect(blocks[0]).toBeLessThanOrEqual(120_000)
          } else {
            const reply = await connection.sync({ entries: [], blocks: [], heartbeat: heartbeat(one.node) })
            expect(reply.heartbeat).toBeDefined()
            expect(reply.heartbeat?.blocks.every(({ remaining }) => remaining >= 0 && remaining <= 120_000)).toBe(true)
            cursors[one.node] = one.beat ? reply.heartbeat?.cursor : undefined
          }
        }
        // Processes send their counts again, as after any loss. A process may learn that its part is lost only after the others have sent
        // theirs.
        const totals: unknown[] = []
        for (let round = 0; round < 3; round++) {
          for (let node = 0; node < nodes.length; node++) {
            const entries = POLICIES.flatMap((_, policy) => KEYS.map((_key, key) => entry(node, policy, key)))
            const { results } = await (nodes[node] as TestNode).connection.sync({ entries, blocks: [], heartbeat: heartbeat(node) })
            totals[round] = results.map((result) => result?.cells.find(({ ordinal }) => ordinal === RUNNING)?.taken ?? 0)
          }
        }
        expect(totals[2]).toEqual(
          POLICIES.flatMap((_, policy) =>
            KEYS.map((_key, key) => nodes.reduce((sum, _node, node) => sum + (taken[node]?.[policy]?.[key] ?? 0), 0)),
          ),
        )
        const told = nodes.flatMap(({ warnings }) => warnings)
        for (const node of nodes) expect(new Set(node.warnings.map(({ message }) => message)).size).toBe(node.warnings.length)
        for (const { message } of told) {
          // The name of a part of a value begins with its key.
          const key = /read: (\S+?)(?: .*?)?\. Processes/u.exec(message)?.[1] ?? message
          expect([...corrupted.keys()].some((name) => key.startsWith(name.slice(0, 199)))).toBe(true)
        }
      } finally {
        await Promise.all(nodes.map((node) => node.close()))
      }
    }),
    { numRuns: 40 },
  )
})

function start(namespace: string, warnings: WeirError[], storeDown: unknown[]): Throttler {
  const throttler = createThrottler({
    // The timeout is long, so that a busy machine doesn't look like an outage.
    store: redisStore(here.server.url, { namespace, timeout: 30_000 }),
    policies: [{ name: 'fixed', limit: 100, interval: calendar('week') }],
    heartbeat: 100,
  })
  throttler.on('warning', ({ error }) => warnings.push(error))
  throttler.on('storeDown', ({ cause }) => storeDown.push(cause))
  onTestFinished(() => throttler.close())
  return throttler.start()
}

test('throttlers go on when what they count is corrupted: none is storeDown, limits hold, and the total is whole again', async () => {
  const namespace = freshNamespace()
  const warnings: WeirError[] = []
  const storeDown: unknown[] = []
  const nodes = [1, 2, 3].map(() => start(namespace, warnings, storeDown))
  await expect.poll(() => nodes.map((node) => snapshot(node).nodes), { timeout: 10_000 }).toEqual([3, 3, 3])
  const [a, b, c] = nodes as [Throttler, Throttler, Throttler]
  let allowed = 0
  const take = (node: Throttler, units: number): void => {
    for (let i = 0; i < units; i++) if (node.check('key').allowed) allowed++
  }
  const shown = async (): Promise<number> => Number(await here.admin.get((await here.admin.keys(`${namespace}:*:c:*`))[0] ?? ''))
  take(a, 30)
  take(b, 30)
  await expect.poll(shown, { timeout: 10_000 }).toBe(60)
  const [cell = ''] = await here.admin.keys(`${namespace}:*:n:*`)
  await here.admin.set(cell, 'junk')
  // So few units remain that processes sync after a few units. A process that learns that its own units are missing sends them again.
  take(c, 20)
  await expect.poll(shown, { timeout: 10_000 }).toBe(80)
  await expect.poll(() => nodes.map((node) => node.peek('key').remaining)).toEqual([20, 20, 20])
  for (const key of await here.admin.keys(`${namespace}:*`)) {
    // One transaction, because a throttler that counts in between would make the key again.
    await here.admin.multi().del(key).rpush(key, 'junk').exec()
  }
  for (let round = 0; nodes.some((node) => node.check('key').allowed && ++allowed > 0); round++) {
    if (round === 200) throw new Error('The limit is never reached.')
    await new Promise((resolve) => setTimeout(resolve, 5))
    // The process that takes the last unit announces it immediately. On a busy machine that may take longer than a few requests.
    if (allowed >= 100) await expect.poll(() => nodes.map((node) => node.peek('key').remaining), { interval: 5 }).toEqual([0, 0, 0])
  }
  expect(nodes.map(({ state }) => state)).toEqual(['synced', 'synced', 'synced'])
  expect(storeDown).toEqual([])
  // The overshoot of three processes that announce their last units to each other.
  expect(allowed).toBeGreaterThanOrEqual(100)
  expect(allowed).toBeLessThanOrEqual(103)
  // Two processes may have read the key that was corrupted twice.
  const messages = warnings.map(({ message }) => message).filter((message) => !message.includes(cell))
  expect(new Set(messages).size).toBe(messages.length)
  expect(warnings.length - messages.length).toBeLessThanOrEqual(2)
  expect(warnings.map(({ code }) => code)).toEqual(warnings.map(() => 'WEIR_WARN_STORE_VALUE'))
  // A process that starts now gets the counts too.
  const late = start(namespace, warnings, storeDown)
  await expect.poll(() => late.state, { timeout: 10_000 }).toBe('synced')
  await expect.poll(() => snapshot(late).nodes, { timeout: 10_000 }).toBe(4)
  expect(storeDown).toEqual([])
})

test.each([
  ['fixedWindow', fixedWindow()],
  ['slidingWindow', slidingWindow()],
  ['tokenBucket', tokenBucket({ burst: 100 })],
] as const)('%s: a process that is idle sends its counts again when those of its key are corrupted', async (_, algorithm) => {
  const namespace = freshNamespace()
  const [busy, idle, other] = [1, 2, 3].map(() => {
    const throttler = createThrottler({
      store: redisStore(here.server.url, { namespace, timeout: 30_000 }),
      policies: [{ limit: 100, interval: '7d', algorithm }],
      heartbeat: 100,
    })
    onTestFinished(() => throttler.close())
    return throttler.start()
  }) as [Throttler, Throttler, Throttler]
  const nodes = [busy, idle, other]
  await expect.poll(() => nodes.map((node) => snapshot(node).nodes)).toEqual([3, 3, 3])
  for (let i = 0; i < 50; i++) busy.check('key')
  for (let i = 0; i < 30; i++) idle.check('key')
  await expect.poll(() => [busy, idle].map((node) => Math.floor(node.peek('key').remaining))).toEqual([20, 20])
  for (const key of await here.admin.keys(`${namespace}:*key*`)) await here.admin.multi().del(key).rpush(key, 'junk').exec()
  // The total exceeds the counts of the idle process, so it can't see from the total that its part is missing. On a busy machine a reply
  // may be late, and then the share decides a request.
  let taken = 0
  await expect.poll(() => (busy.check('key').allowed ? ++taken : taken), { interval: 1 }).toBe(20)
  await expect.poll(() => snapshot(idle).policies[0]?.exchanges.resend).toBeGreaterThan(0)
  await expect.poll(async () => Math.ceil((await other.usage('key'))[0]?.used ?? 0)).toBe(100)
})
