import { systemClock } from '@weir/core'
import type { Ordinal, StoreConnection, StorePolicy, SyncEntry } from '@weir/core/sync'
import { redisStore } from '@weir/redis'
import { Redis } from 'ioredis'
import { input, report } from '../harness/child.ts'

export interface WindowsInput {
  readonly port: number
  readonly keys: number
}

/** Redis CPU microseconds for each key. */
export interface WindowsResult {
  /** One pipelined INCRBY and PEXPIRE. */
  readonly plain: number
  /** A key of a fixed window with units to send. */
  readonly fixed: number
  /** A key of a sliding window with 30 spans in use and units to send. */
  readonly sliding: number
  /** The same key without units to send, so that it only reads. */
  readonly asking: number
  /** A key of a token bucket to which twelve processes send units all the time, each of them for two moments. */
  readonly bucket: number
  /** Bytes of such a key in Redis. */
  readonly bucketBytes: number
}

const { port, keys } = input<WindowsInput>()
const ROUNDS = 5
const NODES = 3
const WIDTH = 2000
const admin = new Redis({ port, host: '127.0.0.1' })

async function cpu(): Promise<number> {
  const text = String(await admin.call('INFO', 'cpu'))
  return ['user', 'sys'].reduce((sum, kind) => sum + Number(new RegExp(`^used_cpu_${kind}:([\\d.]+)`, 'm').exec(text)?.[1]) * 1e6, 0)
}

/** Microseconds for each key, in `rounds` rounds of `run`. */
async function measure(rounds: number, run: (round: number) => Promise<unknown>): Promise<number> {
  const before = await cpu()
  for (let round = 1; round <= rounds; round++) await run(round)
  return ((await cpu()) - before) / (rounds * keys)
}

const plain = await measure(ROUNDS, async () => {
  const pipeline = admin.pipeline()
  for (let id = 0; id < keys; id++) pipeline.incrby(`plain:user:${id}`, 1).pexpire(`plain:user:${id}`, 120_000)
  await pipeline.exec()
})

// The limits are never reached, so that nothing is announced.
const limits = { limit: 1e6, hot: 1e6 }
const slidingPolicy: StorePolicy = { id: 'sliding', width: WIDTH, cells: 31, ttl: 60 * WIDTH, ...limits }
const fixedPolicy: StorePolicy = { id: 'fixed', width: 30 * WIDTH, cells: 1, ttl: 60 * WIDTH, ...limits }

const store = redisStore(admin)
const connections = Array.from({ length: NODES }, (_, i) => store.open({ id: `node-${i}`, clock: systemClock, announced: () => {} }))
const inTurn = async (run: (connection: StoreConnection) => Promise<unknown>): Promise<void> => {
  for (const connection of connections) await run(connection)
}
const entries = (policy: StorePolicy, cells: SyncEntry['cells']): SyncEntry[] =>
  Array.from({ length: keys }, (_, id) => ({ policy, key: `user:${id}`, cells }))
const exchange = (connection: StoreConnection, list: readonly SyncEntry[]) => connection.sync({ entries: list, blocks: [] })

// The loop waits until all are connected.
await inTurn(async (connection) => {
  for (let tries = 0; tries < 100; tries++) {
    const reply = await exchange(connection, []).then(
      () => true,
      () => false,
    )
    if (reply) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('Redis does not answer')
})

const now = Math.floor(Date.now() / WIDTH)
const interval = Math.floor(Date.now() / (30 * WIDTH)) as Ordinal
const full = Array.from({ length: 30 }, (_, i) => ({ ordinal: (now - 30 + i) as Ordinal, taken: 5, given: 0 }))
// The full windows are sent in parts, because a batch of full windows for all keys is unusual.
await inTurn(async (connection) => {
  const list = entries(slidingPolicy, full)
  for (let from = 0; from < list.length; from += 100) await exchange(connection, list.slice(from, from + 100))
})

const per = (run: (connection: StoreConnection, round: number) => Promise<unknown>) =>
  measure(ROUNDS, (round) => inTurn((connection) => run(connection, round))).then((micros) => micros / NODES)
const cell = (ordinal: number, taken: number) => [{ ordinal: ordinal as Ordinal, taken, given: 0 }]
const fixed = await per((connection, round) => exchange(connection, entries(fixedPolicy, cell(interval, round))))
const sliding = await per((connection, round) => exchange(connection, entries(slidingPolicy, cell(now, round))))
const asking = await per((connection) => exchange(connection, entries(slidingPolicy, cell(now, 0))))

// The limit is 1000 units per 10 s, sent in thousandths. The bucket is half full, and gets as much as it drains. A process then
// sends its units for an eighth of the time, so that it has some ten counts in the store, of which the last one grows.
const BUCKET_NODES = 12
const bucketPolicy: StorePolicy = { id: 'bucket', width: 10, cells: 1000, limit: 1000, hot: 1e6, ttl: 20_000, drain: 1 }
const EIGHTH = bucketPolicy.cells / 8
const many = Array.from({ length: BUCKET_NODES }, (_, i) => {
  return store.open({ id: (0xabcdef0123456780n + BigInt(i)).toString(16), clock: systemClock, announced: () => {} })
})
const cellNow = (): number => Math.floor(Date.now() / bucketPolicy.width)
const begun = cellNow()
/** Sends the units that each process has allowed since the last time. */
async function bring(): Promise<void> {
  for (const [i, connection] of many.entries()) {
    const part = Math.floor(i * (EIGHTH / BUCKET_NODES))
    const now = cellNow()
    const ordinal = now - ((now - begun + part) % EIGHTH)
    const taken = Math.round((now - ordinal + 27) / BUCKET_NODES)
    await exchange(connection, entries(bucketPolicy, [{ ordinal: ordinal as Ordinal, taken, given: 0 }]))
  }
}
await new Promise((resolve) => setTimeout(resolve, 500))
await exchange(many[0] as StoreConnection, entries(bucketPolicy, [{ ordinal: cellNow() as Ordinal, taken: 500, given: 0 }]))
for (const end = Date.now() + 12_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 400))) await bring()
const bucket =
  (await measure(ROUNDS, async () => {
    await bring()
    await new Promise((resolve) => setTimeout(resolve, 200))
  })) / BUCKET_NODES
const [, names] = (await admin.scan(0, 'MATCH', '*bucket*user:7*', 'COUNT', 1_000_000)) as [string, string[]]
const bucketBytes = Number(await admin.memory('USAGE', names[0] as string))

const result: WindowsResult = { plain, fixed, sliding, asking, bucket, bucketBytes }
report(result)
process.exit(0)
