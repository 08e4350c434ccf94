import { systemClock } from '@weir/core'
import { type Ordinal, ordinalAt, type StoreConnection, type StorePolicy } from '@weir/core/sync'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import { type Figure, whole } from './figure.ts'

const KEYS = 2_000
const BATCH = 200
/** Long, so that no sub-window ends during a measurement on a busy machine. */
const INTERVAL = 3_600_000

const FIXED: StorePolicy = {
  id: `v1:fixed-window:background:${INTERVAL}:user`,
  width: INTERVAL,
  cells: 1,
  limit: 100_000,
  hot: 25_000,
  ttl: 2 * INTERVAL,
}
const SLIDING: StorePolicy = { ...FIXED, id: `v1:sliding-window30:background:${INTERVAL}:user`, width: INTERVAL / 30, cells: 31 }

/** The memory of a key in Redis, measured on a separate server. */
export const sizing: Figure = {
  name: 'sizing',
  makes: ['sizing'],
  about: 'memory and commands in Redis, on a server of its own',
  async make() {
    const rows = [['window', 'processes that sent the key', 'bytes per key', 'commands of a first key write', 'of a later one']]
    for (const nodes of [1, 3, 12]) rows.push(await measured('fixed, per interval', nodes, FIXED, 1))
    for (const cells of [3, 30]) {
      for (const nodes of [1, 3, 12]) rows.push(await measured(`sliding, ${cells} of 30 sub-windows in use`, nodes, SLIDING, cells))
    }
    return { tables: { sizing: rows } }
  },
}

async function measured(name: string, nodes: number, policy: StorePolicy, cells: number): Promise<string[]> {
  const server = await RedisServer.start()
  const store = redisStore(server.url, { timeout: 20_000 })
  const connections = Array.from({ length: nodes }, (_, index) =>
    store.open({ id: `${index}`.padStart(16, '0'), clock: systemClock, announced: () => {} }),
  )
  try {
    // The first sync of a process loads the script, so it is not measured.
    for (const connection of connections) await retried(() => send(connection, policy, 0, 1, 1, 1))
    const fill = async (first: number, taken: number) => {
      for (const connection of connections)
        for (let from = first; from < first + KEYS; from += BATCH) await send(connection, policy, from, BATCH, cells, taken)
    }
    // As many other keys, so that the buffers of clients are as large before as afterwards.
    await fill(1, 10)
    const before = await memory(server)
    const writes: string[] = []
    for (const taken of [10, 20]) {
      await server.command('CONFIG', 'RESETSTAT')
      await fill(KEYS + 1, taken)
      writes.push(((await commands(server)) / (KEYS * nodes)).toFixed(1))
    }
    const bytes = ((await memory(server)) - before) / KEYS
    return [name, String(nodes), whole(bytes), ...writes]
  } finally {
    for (const connection of connections) await connection.close()
    await server.stop()
  }
}

async function send(
  connection: StoreConnection,
  policy: StorePolicy,
  from: number,
  count: number,
  cells: number,
  taken: number,
): Promise<void> {
  const newest = ordinalAt(Date.now(), policy.width)
  const list = Array.from({ length: cells }, (_, index) => ({ ordinal: (newest - cells + 1 + index) as Ordinal, taken, given: 0 }))
  const entries = Array.from({ length: count }, (_, index) => ({ policy, key: `user-${`${from + index}`.padStart(10, '0')}`, cells: list }))
  const { results } = await connection.sync({ entries, blocks: [] })
  if (results.includes(undefined)) throw new Error('A part of a batch failed.')
}

/** Retries, because connecting takes a moment and a sync does not wait for it. */
async function retried<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = 100; ; left--) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

/** The memory of the server, once it has freed the buffers of clients. Redis does that when they are idle for two seconds. */
async function memory(server: RedisServer): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 4_000))
  return Number(/used_memory:(\d+)/.exec(await server.command('INFO', 'memory'))?.[1])
}

/** Number of executed commands, including commands in scripts, without commands of the connections themselves. */
async function commands(server: RedisServer): Promise<number> {
  const calls = [...(await server.command('INFO', 'commandstats')).matchAll(/cmdstat_([\w|]+):calls=(\d+)/g)]
  return calls
    .filter(([, name = '']) => !/^(info|config|client|hello|ping|subscribe|select)/.test(name))
    .reduce((sum, [, , count]) => sum + Number(count), 0)
}
