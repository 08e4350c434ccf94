import type { BlockChange, HeartbeatReply, Ordinal, StorePolicy, SyncReply } from '@weir/core/sync'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { RedisServer } from '@weir/tooling/redis-servers'
import { type ClusterSetup, startCluster } from '@weir/tooling/redis-topologies'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { escapePolicy, intervalKeys, Keys, offenceKey, sequenceKey, windowKey } from '../src/keys/keys.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'

// The width of a cell, so large that the running cell does not change during the test.
const WIDTH = 86_400_000_000
const RUNNING = Math.floor(Date.now() / WIDTH) as Ordinal
const FIXED: StorePolicy = { id: 'fixed', width: WIDTH, cells: 1, limit: 1000, hot: 3, ttl: WIDTH }
const SLIDING: StorePolicy = { id: 'sliding', width: WIDTH, cells: 4, limit: 1000, hot: 3, ttl: 8 * WIDTH }
/** The key that is corrupted, and its neighbours in the batch. */
const NAMES = ['before', 'corrupt', 'behind']
const GROWTH = { factor: 2, max: 7_200_000, memory: 60_000 }
const TEN_MEGABYTES = 'x'.repeat(10 * 1024 * 1024)

type Admin = Redis | Cluster

/** Values that any writer can put in place of a valid one. */
const OF_ANOTHER_TYPE: Readonly<Record<string, (admin: Admin, key: string) => Promise<unknown>>> = {
  'a string': (admin, key) => admin.set(key, 'junk'),
  'a hash': (admin, key) => admin.hset(key, 'field', 'junk'),
  'a list': (admin, key) => admin.rpush(key, 'junk'),
  'a set': (admin, key) => admin.sadd(key, 'junk'),
  'a sorted set': (admin, key) => admin.zadd(key, 1e300, 'junk'),
  'a stream': (admin, key) => admin.xadd(key, '*', 'field', 'junk'),
  'a HyperLogLog': (admin, key) => admin.pfadd(key, 'junk'),
}
const TEXTS: Readonly<Record<string, string>> = {
  words: 'not a number',
  nothing: '',
  'a huge number': '1e308',
  'a huge negative one': '-1e308',
  infinity: 'inf',
  'not-a-number': 'nan',
  'a negative number': '-5',
  'ten to the thirty': `1${'0'.repeat(30)}`,
  'a hexadecimal number': '0x1F',
  'binary bytes': '\u0000\u0001\n\r\u001b[31m',
  'ten megabytes': TEN_MEGABYTES,
}

interface Target {
  readonly key: string
  readonly types: readonly string[]
  /** Texts that are invalid values. None for a key that contains no text. */
  readonly texts: readonly string[]
}

const allTypesBut = (...types: string[]): string[] => Object.keys(OF_ANOTHER_TYPE).filter((type) => !types.includes(type))
const allTextsBut = (...texts: string[]): string[] => Object.keys(TEXTS).filter((text) => !texts.includes(text))

/** Three processes that count, block, and report their status in their own namespace. */
class Scene {
  readonly nodes: readonly TestNode[]
  readonly keys: Keys
  readonly namespace = freshNamespace()
  #taken = 0
  readonly #open: (namespace: string) => TestNode

  constructor(open: (namespace: string) => TestNode, buckets: number) {
    this.#open = open
    this.keys = new Keys(this.namespace, buckets)
    this.nodes = [open(this.namespace), open(this.namespace)]
  }

  /** The units that each process has counted for each key so far. */
  get taken(): number {
    return this.#taken
  }

  get warnings(): string[] {
    return this.nodes.flatMap(({ warnings }) => warnings.map(({ message }) => message))
  }

  /** Every process sends its counts and blocks, which have grown by `grow` units, and a heartbeat. */
  async round(grow = 1): Promise<SyncReply[]> {
    this.#taken += grow
    const replies: SyncReply[] = []
    for (const node of this.nodes) replies.push(await this.sync(node, this.#taken))
    return replies
  }

  sync(node: TestNode, taken: number): Promise<SyncReply> {
    const blocks: BlockChange[] = [FIXED, SLIDING].map((policy) => ({ policy, key: 'blocked', kind: 'restore', remaining: 3_600_000 }))
    blocks.push({ policy: FIXED, key: 'offender', kind: 'lift', remaining: 0 })
    blocks.push({ policy: FIXED, key: 'offender', kind: 'exceeded', remaining: 60_000, growth: GROWTH })
    return node.connection.sync({
      entries: [FIXED, SLIDING].flatMap((policy) => NAMES.map((key) => ({ policy, key, cells: [{ ordinal: RUNNING, taken, given: 0 }] }))),
      blocks,
      heartbeat: { ttl: 600_000, cursor: undefined, policies: [FIXED, SLIDING], status: `status of ${node.id}`, rules: '[]', watch: true },
    })
  }

  async start(): Promise<{ readonly node: TestNode; readonly heartbeat: HeartbeatReply }> {
    const node = this.#open(this.namespace)
    const { heartbeat } = await this.sync(node, 0)
    if (heartbeat === undefined) throw new Error('no heartbeat')
    return { node, heartbeat }
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.close()))
  }

  targets(): Record<string, Target> {
    const shardOf = (name: string) => this.keys.shards[this.keys.shardOf(name)]
    const bucket = shardOf('corrupt')
    const blocked = shardOf('blocked')
    const [registry] = this.keys.shards
    const offender = shardOf('offender')
    const [node] = this.nodes
    if (bucket === undefined || blocked === undefined || registry === undefined || offender === undefined || node === undefined) {
      throw new Error('no bucket')
    }
    const { counterPrefix, cellPrefix, suffix } = intervalKeys(bucket, escapePolicy(FIXED.id), RUNNING)
    const sorted = { types: allTypesBut('a sorted set'), texts: [] }
    return {
      'the readable counter': { key: `${counterPrefix}corrupt${suffix}`, types: allTypesBut(), texts: allTextsBut('a negative number') },
      'what counts in a fixed window': { key: `${cellPrefix}corrupt${suffix}`, types: allTypesBut(), texts: allTextsBut() },
      'a sliding window': { key: windowKey(bucket, escapePolicy(SLIDING.id), 'corrupt'), types: allTypesBut('a hash'), texts: [] },
      'how often a key was blocked': {
        key: offenceKey(offender, escapePolicy(FIXED.id), 'offender'),
        types: allTypesBut(),
        texts: allTextsBut(),
      },
      'the number of the last exchange': { key: sequenceKey(bucket, node.id), types: allTypesBut(), texts: allTextsBut() },
      'the versions of blocks': { key: blocked.log, ...sorted },
      'the ends of blocks': { key: blocked.ends, ...sorted },
      'how long changes of blocks are kept': { key: blocked.keep, ...sorted },
      'the hot keys': { key: bucket.hot, ...sorted },
      'the live nodes': { key: registry.nodes, ...sorted },
      'the statuses': { key: registry.status, types: allTypesBut('a hash'), texts: [] },
      'the rules of nodes': { key: registry.rules, types: allTypesBut('a hash'), texts: [] },
      'the time that nodes go by': {
        key: registry.ahead,
        types: allTypesBut(),
        texts: allTextsBut('a negative number', 'a hexadecimal number'),
      },
    }
  }
}

/** Expects a complete reply: each key's total of all processes, its block, and the processes. */
function expectWhole({ results, blocks, heartbeat }: SyncReply, total: number, nodes: number, hot = NAMES.length): void {
  expect(results.map((result) => result?.cells)).toEqual(results.map(() => [{ ordinal: RUNNING, taken: total, given: 0 }]))
  expect(blocks.every((remaining) => remaining !== undefined && Number.isFinite(remaining))).toBe(true)
  expect(heartbeat?.nodes).toBe(nodes)
  expect(heartbeat?.statuses?.length).toBe(nodes)
  expect(heartbeat?.blocks.filter(({ key }) => key === 'blocked')).toHaveLength(2)
  expect(heartbeat?.hot.filter(({ policyId }) => policyId === 'fixed')).toHaveLength(hot)
}

/** Corrupts a value, and syncs all processes. */
async function corruptAndCount(scene: Scene, corrupt: () => Promise<unknown>, hotLost = false): Promise<void> {
  await scene.round(5)
  expectWhole((await scene.round())[1] as SyncReply, 2 * scene.taken, 2)
  expect(scene.warnings).toEqual([])
  await corrupt()
  // No call fails meanwhile, and other keys lose nothing.
  const [first] = await scene.round()
  expect(first?.results.every((result) => result !== undefined)).toBe(true)
  for (const place of [0, 2, 3, 5]) expect(first?.results[place]?.cells[0]?.taken).toBe(2 * scene.taken - 1)
  const third = await scene.start()
  expect(third.heartbeat.nodes).toBe(3)
  expect(third.node.warnings).toEqual([])
  await third.node.close()
  // All processes have sent their counts again.
  const [, last] = await scene.round()
  // A key is marked as near its limit once. If that list is corrupted, processes that start later lack the mark until the interval ends.
  const hot = last?.heartbeat?.hot.filter(({ policyId }) => policyId === 'fixed').length
  expectWhole(last as SyncReply, 2 * scene.taken, 2, hotLost ? hot : NAMES.length)
}

describe.each(['a server', 'a Cluster'])('%s', (topology) => {
  let server: RedisServer
  let cluster: ClusterSetup
  let admin: Admin
  let open: (namespace: string) => TestNode
  const buckets = topology === 'a server' ? 1 : 16

  beforeAll(async () => {
    if (topology === 'a server') {
      server = await RedisServer.start()
      admin = new Redis(server.port)
      open = (namespace) => new TestNode(redisStore(server.url, { ...PATIENT, namespace }))
    } else {
      cluster = await startCluster()
      const startup = cluster.servers.map(({ port }) => ({ host: '127.0.0.1', port }))
      admin = new Cluster(startup)
      open = (namespace) => new TestNode(redisStore({ cluster: startup }, { ...PATIENT, namespace }))
    }
  }, 60_000)
  afterAll(async () => {
    admin.disconnect()
    await (topology === 'a server' ? server.stop() : cluster.stop())
  })

  const names = Object.keys(new Scene(() => ({ id: 'x' }) as TestNode, 1).targets())
  test.each(names)('%s: whatever stands there instead is lost, told of once and written anew', { timeout: 120_000 }, async (name) => {
    const scene = () => new Scene(open, buckets)
    const { types, texts } = scene().targets()[name] as Target
    // A Cluster runs the same scripts. The only difference is that keys of a batch are in several shards.
    const most = topology === 'a server' ? Number.POSITIVE_INFINITY : 1
    const corruptions = [
      ...types.slice(0, most).map((type) => [type, OF_ANOTHER_TYPE[type] as (admin: Admin, key: string) => Promise<unknown>] as const),
      ...texts.slice(0, most).map((text) => [text, (client: Admin, key: string) => client.set(key, TEXTS[text] as string)] as const),
    ]
    for (const [what, write] of corruptions) {
      const one = scene()
      const { key } = one.targets()[name] as Target
      await corruptAndCount(
        one,
        async () => {
          await admin.del(key)
          await write(admin, key)
        },
        name === 'the hot keys',
      )
      expect(one.warnings.length, what).toBe(1)
      expect(one.warnings[0], what).toContain(`can't read: ${key}. Processes`)
      expect(await admin.pttl(key), what).not.toBe(-1)
      await one.close()
    }
  })
})
