import { redisStore } from '@weir/redis'
import { Redis } from 'ioredis'
import { input, report } from '../harness/child.ts'
import { median, percentile } from '../harness/statistics.ts'
import { MIDDLEWARE, type MiddlewareName } from './contenders.ts'
import type { Handles, Kind } from './limit.ts'

/** A process that runs a middleware with Weir's store and with its own memory store, by turns. */
export interface PairInput {
  readonly url: string
  readonly middleware: MiddlewareName
  readonly keys: number
  readonly requests: number
}

/** Microseconds of the middleware for a request. */
export interface PairResult {
  readonly weir: { readonly p50: number; readonly p99: number }
  readonly memory: { readonly p50: number; readonly p99: number }
}

/** Requests of one store in a row. */
const ROW = 100

const { url, middleware, keys, requests } = input<PairInput>()
const connections = { weir: redisStore(url), redis: new Redis(url, { lazyConnect: true }) }
const limit = { name: 'pair', limit: 1_000_000, interval: 60_000 }
const times: Record<'weir' | 'memory', number[]> = { weir: [], memory: [] }
const limited = await MIDDLEWARE[middleware]()
const handlers: (readonly [Kind & keyof typeof times, Handles])[] = [
  ['weir', await limited('weir', limit, connections)],
  ['memory', await limited('memory', limit, connections)],
]

async function row(handle: Handles, from: number, into: number[]): Promise<void> {
  for (let i = from; i < from + ROW; i++) {
    const key = i % keys
    const address = `10.0.${key >> 8}.${key & 255}`
    const begin = performance.now()
    await handle(address)
    into.push((performance.now() - begin) * 1000)
  }
}

for (let made = 0; made < 2 * requests; made += ROW) {
  // The first half is the warm-up.
  if (made === requests) for (const [kind] of handlers) times[kind].length = 0
  for (const [kind, handle] of (made / ROW) % 2 === 0 ? handlers : handlers.toReversed()) await row(handle, made, times[kind])
  await new Promise((resolve) => setImmediate(resolve))
}
const of = (list: readonly number[]) => ({ p50: median(list), p99: percentile(list, 0.99) })
report({ weir: of(times.weir), memory: of(times.memory) } satisfies PairResult)
process.exit(0)
