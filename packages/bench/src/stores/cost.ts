import { createThrottler } from '@weir/core'
import type { StoreConnection, StorePolicy, SyncEntry } from '@weir/core/sync'
import { input, report } from '../harness/child.ts'
import { percentile } from '../harness/statistics.ts'
import { cpuOf } from './cpu.ts'
import { type Place, storeAt } from './place.ts'

export interface CostInput {
  readonly place: Place
  /** The server's process. Undefined if it can't be measured separately from this one. */
  readonly server?: number
  /** The number of keys of a sync. With 0 the store decides one request. */
  readonly keys: number
  readonly times: number
}

export interface CostResult {
  /** Milliseconds from a call to its reply, one at a time. */
  readonly p50: number
  readonly p99: number
  /** CPU milliseconds for each call: of the server, and of this process. */
  readonly server: number
  readonly own: number
}

const { place, server, keys, times } = input<CostInput>()
const store = await storeAt(place)
const ask = keys === 0 ? deciding() : await exchanging()
for (let i = 0; i < times / 4; i++) await ask()

const waits: number[] = []
const before = server === undefined ? Number.NaN : cpuOf(server)
const cpu = process.cpuUsage()
for (let i = 0; i < times; i++) {
  const began = performance.now()
  await ask()
  waits.push(performance.now() - began)
}
const { user, system } = process.cpuUsage(cpu)
const after = server === undefined ? Number.NaN : cpuOf(server)
report({
  p50: percentile(waits, 0.5),
  p99: percentile(waits, 0.99),
  server: (after - before) / times,
  own: (user + system) / 1_000 / times,
} satisfies CostResult)
process.exit(0)

/** Makes a sync of a process with `keys` due keys. Each has a few units more than before, and another process counted it, too. */
async function exchanging(): Promise<() => Promise<unknown>> {
  const width = 3_600_000
  const policy: StorePolicy = { id: 'default:3600000:stores', width, cells: 1, limit: 1e9, hot: Number.POSITIVE_INFINITY, ttl: 2 * width }
  let units = 0
  const open = (id: string): StoreConnection => store.open({ id, clock, announced: () => {} })
  const sync = (connection: StoreConnection): Promise<unknown> => {
    units += 3
    const ordinal = Math.floor(Date.now() / width)
    const cells = [{ ordinal, taken: units, given: 0 }] as unknown as SyncEntry['cells']
    const entries = Array.from({ length: keys }, (_, i): SyncEntry => ({ policy, key: `user:${i}`, cells }))
    return connection.sync({ entries, blocks: [] }).then(({ results }) => {
      if (results.length !== keys || results.includes(undefined)) throw new Error(`${place.kind} has not taken all counts`)
    })
  }
  const { systemClock: clock } = await import('@weir/core')
  const [one, other] = [open('one'), open('other')]
  for (const connection of [one, other]) await untilAnswered(() => sync(connection))
  return () => sync(one)
}

function deciding(): () => Promise<unknown> {
  const throttler = createThrottler({
    policies: [{ limit: 1e6, interval: '1h', coordination: 'central', storeTimeout: '5s', failMode: 'closed' }],
    store,
  }).start()
  let asked = 0
  return async () => {
    const { allowed } = await throttler.checkAsync(`user:${asked++ % 1_000}`)
    if (!allowed) throw new Error(`${place.kind} has not decided`)
  }
}

/** Repeats a sync until it succeeds, because a store does not answer before it is connected. */
async function untilAnswered(sync: () => Promise<unknown>): Promise<void> {
  for (const end = Date.now() + 10_000; ; ) {
    try {
      await sync()
      return
    } catch (error) {
      if (Date.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
