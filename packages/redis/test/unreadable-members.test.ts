import type { BlockChange, Cell, HeartbeatReply, Ordinal, StorePolicy, SyncReply } from '@weir/core/sync'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { intervalKeys, Keys, MOST_HOT, type ShardKeys, windowKey } from '../src/keys/keys.ts'
import { freshNamespace } from './fixtures.ts'
import { ownServer } from './own-server.ts'

// The width of a cell, so large that the running cell does not change during the test.
const WIDTH = 86_400_000_000
const RUNNING = Math.floor(Date.now() / WIDTH) as Ordinal
const FIXED: StorePolicy = { id: 'fixed', width: WIDTH, cells: 1, limit: 1000, hot: 3, ttl: WIDTH }
const SLIDING: StorePolicy = { id: 'sliding', width: WIDTH, cells: 4, limit: 1000, hot: 3, ttl: 8 * WIDTH }

const here = ownServer()

interface Scene {
  readonly namespace: string
  readonly bucket: ShardKeys
  open(): TestNode
}

function scene(): Scene {
  const namespace = freshNamespace()
  const [bucket] = new Keys(namespace, 1).shards
  if (bucket === undefined) throw new Error('no bucket')
  return { namespace, bucket, open: () => new TestNode(redisStore(here.server.url, { namespace, timeout: 5_000 })) }
}

function count(node: TestNode, policy: StorePolicy, key: string, ...cells: readonly [Ordinal, number][]): Promise<SyncReply> {
  return node.connection.sync({
    entries: [{ policy, key, cells: cells.map(([ordinal, taken]) => ({ ordinal, taken, given: 0 })) }],
    blocks: [],
  })
}

async function beat(node: TestNode, cursor?: string): Promise<HeartbeatReply> {
  const { heartbeat } = await node.connection.sync({
    entries: [],
    blocks: [],
    heartbeat: { ttl: 600_000, cursor, policies: [FIXED, SLIDING], status: 'fine', watch: true },
  })
  if (heartbeat === undefined) throw new Error('no heartbeat')
  return heartbeat
}

async function block(node: TestNode, change: Partial<BlockChange> = {}): Promise<number | undefined> {
  const { blocks } = await node.connection.sync({
    entries: [],
    blocks: [{ policy: FIXED, key: 'blocked', kind: 'set', remaining: 3_600_000, ...change }],
  })
  return blocks[0]
}

const cellsOf = ({ results }: SyncReply): readonly Cell[] | undefined => results[0]?.cells
const nets = (reply: SyncReply): number[] | undefined => cellsOf(reply)?.map(({ taken, given }) => taken - given)

test.each([
  'x OTHER:1',
  '5 NODE:x',
  '5 NODE:',
  '5 NODE:-1 OTHER:4',
  '5 NODE:nan OTHER:4',
  'inf NODE:1',
  'nan NODE:1',
  '-7 NODE:1',
  '1e308 NODE:1',
  `1${'0'.repeat(30)} NODE:1`,
  '3 NODE:5 OTHER:1',
  '7:x NODE:1',
  ':5 NODE:1',
  ' ',
  `5 NODE:1${' x:1'.repeat(100_000)}`,
])('a cell that says "%.30s" is lost, and whole when all nodes have sent theirs again', async (text) => {
  const { bucket, open } = scene()
  const [a, b] = [open(), open()]
  await count(a, FIXED, 'k', [RUNNING, 3])
  expect(nets(await count(b, FIXED, 'k', [RUNNING, 4]))).toEqual([7])
  const { cellPrefix, counterPrefix, suffix } = intervalKeys(bucket, 'fixed', RUNNING)
  await here.admin.set(`${cellPrefix}k${suffix}`, text.replace('NODE', a.id).replace('OTHER', b.id))
  expect(nets(await count(a, FIXED, 'k', [RUNNING, 5]))).toEqual([5])
  expect(nets(await count(b, FIXED, 'k', [RUNNING, 4]))).toEqual([9])
  expect(nets(await count(a, FIXED, 'k', [RUNNING, 6]))).toEqual([10])
  expect(await here.admin.get(`${counterPrefix}k${suffix}`)).toBe('10')
  expect(a.warnings.map(({ code, message }) => [code, message])).toEqual([
    [
      'WEIR_WARN_STORE_VALUE',
      `Ignored a value in Redis that Weir can't read: ${cellPrefix}k${suffix}. Processes write theirs again. Does another program write to these keys? See @weir/core/docs/errors/weir_warn_store_value.md`,
    ],
  ])
  expect(b.warnings).toEqual([])
  expect(await here.admin.pttl(`${cellPrefix}k${suffix}`)).toBeGreaterThan(0)
  await Promise.all([a.close(), b.close()])
})

test('each node learns that a key has lost its counts, also the one that meets the loss', async () => {
  const { namespace, bucket, open } = scene()
  const [a, b] = [open(), open()]
  const { cellPrefix, suffix } = intervalKeys(bucket, 'fixed', RUNNING)
  await count(a, FIXED, 'k', [RUNNING, 1])
  await count(a, SLIDING, 'k', [RUNNING, 1])
  await here.listening(namespace, 2)
  for (const key of [`${cellPrefix}k${suffix}`, windowKey(bucket, 'sliding', 'k')]) {
    await here.admin.del(key)
    await here.admin.sadd(key, 'x')
  }
  await count(a, FIXED, 'k', [RUNNING, 2])
  await count(a, SLIDING, 'k', [RUNNING, 2])
  for (const node of [a, b]) {
    await expect
      .poll(() => node.announcements)
      .toEqual([FIXED, SLIDING].map(({ id }) => ({ type: 'total', policyId: id, key: 'k', cells: [] })))
  }
  await Promise.all([a.close(), b.close()])
})

/** A script with which the server itself packs a value. */
const PACK = "return redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(cjson.decode(ARGV[2])))"
const WINDOWS: readonly (readonly [what: string, field: 'sum' | 'own', value: unknown, packed: boolean])[] = (
  ['sum', 'own'] as const
).flatMap((field) => [
  ['no MessagePack', field, 'junk', false] as const,
  ['nothing', field, '', false] as const,
  ['a cut list', field, '\u0093\u0001', false] as const,
  ['lists in lists', field, '\u0091'.repeat(50_000), false] as const,
  ['a long text', field, 'x'.repeat(10 * 1024 * 1024), false] as const,
  ['a number', field, 5, true] as const,
  ['a text', field, 'text', true] as const,
  ['an empty text', field, '', true] as const,
  ['true', field, true, true] as const,
  ['texts', field, ['5', '1', '0'], true] as const,
  ['two numbers', field, [RUNNING, 1], true] as const,
  ['a negative count', field, [RUNNING, -1, 0], true] as const,
  ['a huge count', field, [RUNNING, 1e300, 0], true] as const,
  ['a half ordinal', field, [RUNNING + 0.5, 1, 0], true] as const,
  ['descending ordinals', field, [RUNNING, 1, 0, RUNNING - 1, 1, 0], true] as const,
  ['a list for a number', field, [RUNNING, [1], 0], true] as const,
])
test.each(WINDOWS)(
  'a sliding window with %s as its %s is lost, and whole when all nodes have sent theirs again',
  async (_, field, value, packed) => {
    const { bucket, open } = scene()
    const [a, b] = [open(), open()]
    await count(a, SLIDING, 'k', [(RUNNING - 1) as Ordinal, 2], [RUNNING, 3])
    expect(nets(await count(b, SLIDING, 'k', [RUNNING, 4]))).toEqual([2, 7])
    const hash = windowKey(bucket, 'sliding', 'k')
    const name = field === 'sum' ? ':c' : a.id
    if (packed) await here.admin.eval(PACK, 1, hash, name, JSON.stringify(value))
    else await here.admin.hset(hash, name, Buffer.from(value as string, 'latin1'))
    expect(nets(await count(a, SLIDING, 'k', [(RUNNING - 1) as Ordinal, 2], [RUNNING, 5]))).toEqual([2, 5])
    expect(nets(await count(b, SLIDING, 'k', [RUNNING, 4]))).toEqual([2, 9])
    expect(a.warnings).toHaveLength(1)
    expect(b.warnings).toEqual([])
    expect(await here.admin.pttl(hash)).toBeGreaterThan(0)
    await Promise.all([a.close(), b.close()])
  },
)

test.each(['nan', 'inf', 'x', '', '1e308'])('a window whose marks say "%s" is announced and marked as hot all the same', async (text) => {
  const { namespace, bucket, open } = scene()
  const [a, b] = [open(), open()]
  const small = { ...SLIDING, limit: 5 }
  await here.listening(namespace, 2)
  await count(a, small, 'k', [RUNNING, 1])
  await here.admin.hset(windowKey(bucket, 'sliding', 'k'), ':a', text, ':h', text)
  await count(a, small, 'k', [RUNNING, 4])
  await count(a, small, 'k', [RUNNING, 6])
  await expect.poll(() => b.announcements.map(({ type }) => type)).toEqual(['total', 'total'])
  expect(await here.admin.zcard(bucket.hot)).toBe(1)
  await Promise.all([a.close(), b.close()])
})

test.each([Infinity, -Infinity, 1e300, -5, 2.5])(
  'a version of the block list that is %d loses the list, and nodes send theirs again',
  async (version) => {
    const { bucket, open } = scene()
    const [a, b] = [open(), open()]
    await block(a)
    const before = await beat(b)
    expect(before.blocks).toMatchObject([{ policyId: 'fixed', key: 'blocked' }])
    await here.admin.zadd(bucket.log, version === Infinity ? '+inf' : version === -Infinity ? '-inf' : version, '')
    const after = await beat(b, before.cursor)
    expect(after.generation).not.toBe(before.generation)
    expect(b.warnings).toHaveLength(1)
    expect(await block(b, { kind: 'restore', remaining: 60_000 })).toBe(60_000)
    expect((await beat(a)).blocks).toHaveLength(1)
    expect((await beat(b, after.cursor)).generation).toBe(after.generation)
    expect(a.warnings).toEqual([])
    await Promise.all([a.close(), b.close()])
  },
)

test('a block whose end is none is lost, others are not, and nodes send theirs again', async () => {
  for (const set of ['ends', 'keep'] as const) {
    const { bucket, open } = scene()
    const a = open()
    await block(a, { key: 'other' })
    await block(a)
    const before = await beat(a)
    await here.admin.zadd(bucket[set], '+inf', 'fixed\nblocked')
    const after = await beat(a)
    expect(after.blocks.every(({ remaining }) => Number.isFinite(remaining) && remaining <= 3_600_000)).toBe(true)
    expect(after.blocks.map(({ key }) => key)).toContain('other')
    if (set === 'ends') {
      expect(after.generation).not.toBe(before.generation)
      expect(a.warnings.map(({ message }) => message)).toEqual([expect.stringContaining(`${bucket.ends} fixed blocked`)])
    }
    // The restore of a process that had received the block.
    expect(await block(a, { kind: 'restore', remaining: 3_000_000 })).toBeGreaterThan(2_900_000)
    expect((await beat(a)).blocks).toHaveLength(2)
    const ttls = await Promise.all([bucket.log, bucket.ends, bucket.keep].map((key) => here.admin.pttl(key)))
    expect(ttls.every((ttl) => ttl > 0 && ttl <= 7_200_000)).toBe(true)
    await a.close()
  }
})

test('what is no block is dropped from the list of blocks, a page at a time', async () => {
  const { bucket, open } = scene()
  const a = open()
  await block(a)
  const { cursor } = await beat(a)
  await block(a, { key: 'later' })
  const junk = Array.from({ length: 3_000 }, (_, i) => [i < 1_500 ? 1.5 : 1e300, `junk ${i}`]).flat()
  await here.admin.zadd(
    bucket.log,
    ...junk,
    1.5,
    'fixed\nof\nthree',
    1.5,
    '\n',
    1.5,
    'fixed\nunknown',
    1.5,
    `fixed\n${'x'.repeat(1_000_000)}`,
  )
  let last = await beat(a, cursor)
  const found = [...last.blocks]
  for (let i = 0; i < 10 && (await here.admin.zcard(bucket.log)) > 3; i++) {
    await block(a, { key: 'later', remaining: 3_600_000 + i })
    last = await beat(a, last.cursor)
    found.push(...last.blocks)
  }
  expect(await here.admin.zcard(bucket.log)).toBe(3)
  expect([...new Set(found.map(({ key }) => key))]).toEqual(['later'])
  expect(a.warnings).toHaveLength(1)
  const b = open()
  expect((await beat(b)).blocks.map(({ key }) => key).sort()).toEqual(['blocked', 'later'])
  await Promise.all([a.close(), b.close()])
})

test('what is no hot key is dropped from the list, and a new node hears of those that are', async () => {
  const { bucket, open } = scene()
  const [a, b, c] = [open(), open(), open()]
  await count(a, FIXED, 'k', [RUNNING, 5])
  const soon = Date.now() + 60_000
  const junk = [
    '',
    'junk',
    'a\nb',
    '\n\n',
    '\n\n5',
    'fixed\nk\nx',
    'fixed\nk\n5\n6',
    'fixed\nk\n-1',
    'fixed\nk\n1e300',
    `fixed\n${'x'.repeat(600_000)}\n5`,
  ]
  await here.admin.zadd(bucket.hot, ...junk.flatMap((member) => [soon, member]), '+inf', 'fixed\nendless\n5')
  // These names are valid, but no such counts exist.
  await here.admin.zadd(bucket.hot, soon, `fixed\nk\n${'9'.repeat(30)}`)
  await here.admin.zadd(bucket.hot, soon, 'no such policy\nk\n5', soon, 'fixed\nno such key\n5')
  for (const node of [b, c]) expect((await beat(node)).hot.map(({ key }) => key)).toEqual(['k'])
  expect(b.warnings).toHaveLength(1)
  expect(c.warnings).toEqual([])
  expect(await here.admin.zcard(bucket.hot)).toBe(4)
  await Promise.all([a.close(), b.close(), c.close()])
})

test('a list of hot keys that others have filled is emptied, and takes new ones', async () => {
  const { bucket, open } = scene()
  const [a, b] = [open(), open()]
  const soon = Date.now() + 60_000
  for (let i = 0; i < 3; i++) {
    await here.admin.zadd(bucket.hot, ...Array.from({ length: MOST_HOT }, (_, j) => [soon, `fixed\nkey ${i} ${j}\n5`]).flat())
  }
  await count(a, FIXED, 'k', [RUNNING, 5])
  expect(await here.admin.zcard(bucket.hot)).toBe(1)
  expect((await beat(b)).hot.map(({ key }) => key)).toEqual(['k'])
  expect([...a.warnings, ...b.warnings]).toHaveLength(1)
  await Promise.all([a.close(), b.close()])
})

test('rules that can’t be read are dropped; others are handed out', async () => {
  const { bucket, open } = scene()
  const [a, b] = [open(), open()]
  const told = async (node: TestNode, rules: string) =>
    (await node.connection.sync({ entries: [], blocks: [], heartbeat: { ttl: 10_000, cursor: '', policies: [], rules } })).heartbeat?.rules
  expect(await told(a, 'of a')).toEqual([])
  const later = Date.now() + 30_000
  const values = ['', 'x', 'nan fine', 'inf fine', '1e300 fine', `${later}`, `${later} ${'x'.repeat(10 * 1024 * 1024)}`]
  await here.admin.hset(bucket.rules, Object.fromEntries(values.map((value, i) => [`text ${i}`, value])))
  await here.admin.hset(bucket.rules, 'x'.repeat(1024 * 1024), `${later} long`, 'over', `${Date.now() - 1} fine`, 'good', `${later} c`)
  expect(await told(b, 'of b')).toEqual(
    expect.arrayContaining([
      { node: a.id, rules: 'of a' },
      { node: 'c', rules: 'good' },
    ]),
  )
  expect((await here.admin.hkeys(bucket.rules)).sort()).toEqual(['good', 'of a', 'of b'])
  expect(b.warnings.length).toBeGreaterThan(0)
  await here.admin.hset(bucket.rules, Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`text ${i}`, `${later} n`])))
  expect(await told(b, 'of b')).toEqual([])
  await Promise.all([a.close(), b.close()])
})

test('statuses that can’t be read, and those of nobody, are dropped; others are handed out', async () => {
  const { bucket, open } = scene()
  const [a, b] = [open(), open()]
  await beat(a)
  await beat(b)
  const ids = ['one', 'two', 'three', 'four', 'five']
  await here.admin.zadd(bucket.nodes, ...ids.flatMap((id) => [Date.now() + 60_000, id]))
  const texts = ['', 'x', 'nan fine', 'inf fine', `${Date.now()} ${'x'.repeat(10 * 1024 * 1024)}`]
  await here.admin.hset(bucket.status, Object.fromEntries(ids.map((id, i) => [id, texts[i] as string])))
  await here.admin.hset(bucket.status, 'nobody', 'x', 'nobody else', `${Date.now()} fine`)
  const { statuses } = await beat(a)
  expect(statuses?.map(({ node }) => node).sort()).toEqual([a.id, b.id].sort())
  expect(await here.admin.hlen(bucket.status)).toBe(3)
  expect(a.warnings).toHaveLength(ids.length)
  for (const text of ['x', 'nan', 'inf', '1e300']) {
    await here.admin.hset(bucket.status, ':until', text)
    expect((await beat(b)).watched, text).toBe(true)
    expect(Number(await here.admin.hget(bucket.status, ':until'))).toBeLessThan(Date.now() + 20_000)
  }
  await here.admin.hset(bucket.status, Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`node-${i}`, 'x'])))
  await beat(b)
  expect((await beat(b)).statuses?.map(({ node }) => node)).toEqual([b.id])
  await Promise.all([a.close(), b.close()])
})

test('live nodes that nobody knows count as long as they say they live, and no longer', async () => {
  const { bucket, open } = scene()
  const a = open()
  await beat(a)
  await here.admin.zadd(bucket.nodes, ...Array.from({ length: 5_000 }, (_, i) => [i % 2 === 0 ? 1 : 1e300, `node ${i}`]).flat())
  await here.admin.zadd(bucket.nodes, '+inf', 'endless', '-inf', 'long ago')
  expect((await beat(a)).nodes).toBe(1)
  await here.admin.zadd(bucket.nodes, Date.now() + 60_000, 'a lie')
  expect((await beat(a)).nodes).toBe(2)
  await a.close()
})

test('what lives for ever, or far too long, still counts right', async () => {
  const { bucket, open } = scene()
  const [a, b] = [open(), open()]
  await count(a, FIXED, 'k', [RUNNING, 3])
  await count(a, SLIDING, 'k', [RUNNING, 3])
  await block(a)
  await beat(a)
  for (const [i, key] of (await here.admin.keys(`${bucket.prefix}*`)).entries()) {
    if (i % 2 === 0) await here.admin.persist(key)
    else await here.admin.pexpire(key, 1e14)
  }
  for (const policy of [FIXED, SLIDING]) expect(nets(await count(b, policy, 'k', [RUNNING, 4]))).toEqual([7])
  expect((await beat(b)).blocks).toHaveLength(1)
  // Sets that all processes share expire again.
  await block(b, { key: 'later', remaining: 7_200_000 })
  for (const set of [bucket.nodes, bucket.status]) expect(await here.admin.pttl(set)).not.toBe(-1)
  await Promise.all([a.close(), b.close()])
})

test('times and units beyond all measure are brought down to what Redis can keep', async () => {
  const { open } = scene()
  const a = open()
  const endless = { ...FIXED, id: 'endless', ttl: 1e300 }
  expect(nets(await count(a, endless, 'k', [RUNNING, 1e300]))).toEqual([Number.MAX_SAFE_INTEGER])
  expect(await block(a, { remaining: 1e300 })).toBe(5e12)
  expect(await block(a, { key: 'l', kind: 'exceeded', remaining: 1e300, growth: { factor: 1e300, max: 1e300, memory: 1e300 } })).toBe(5e12)
  expect((await beat(a)).blocks.every(({ remaining }) => remaining <= 5e12)).toBe(true)
  expect(a.warnings).toEqual([])
  await a.close()
})

test('a flood of values that can’t be read is told of in part', async () => {
  const { bucket, open } = scene()
  const a = open()
  const keys = Array.from({ length: 400 }, (_, i) => `key\n\u001b[31m ${i}`)
  const { cellPrefix, suffix } = intervalKeys(bucket, 'fixed', RUNNING)
  for (let i = 0; i < keys.length; i++) await here.admin.set(`${cellPrefix}key%0a%1b[31m%20${i}${suffix}`, 'junk')
  const { results } = await a.connection.sync({
    entries: keys.map((key) => ({ policy: FIXED, key, cells: [{ ordinal: RUNNING, taken: 1, given: 0 }] })),
    blocks: [],
  })
  expect(results.map((result) => result?.cells[0]?.taken)).toEqual(keys.map(() => 1))
  expect(a.warnings).toHaveLength(100)
  for (const { message } of a.warnings) expect(message).toMatch(/^[^\p{Cc}]{50,500}$/u)
  expect(a.warnings.at(-1)?.message).toContain('Weir reports no more of them')
  await a.close()
})
