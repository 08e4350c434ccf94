import { redisStore } from '@weir/redis'
import { Redis } from 'ioredis'
import { input, report } from '../harness/child.ts'
import { percentile } from '../harness/statistics.ts'
import { MIDDLEWARE, type MiddlewareName } from './contenders.ts'
import type { Kind } from './limit.ts'

/** One of several processes. It sends 'ready' to its parent, which replies with the times at which the phases begin. */
export interface NodeInput {
  readonly url: string
  readonly middleware: MiddlewareName
  readonly kind: Kind
  readonly phases: readonly Phase[]
}

export interface Phase {
  readonly keys: number
  /** Units per key and window. */
  readonly limit: number
  /** The window, and the part of it in which requests come evenly. In milliseconds. */
  readonly window: number
  readonly busy: number
  /** Requests of this process. */
  readonly requests: number
}

export interface PhaseResult {
  readonly allowed: number
  /** Milliseconds of the middleware for a request. */
  readonly p50: number
  readonly p99: number
}

const { url, middleware, kind, phases } = input<NodeInput>()
const connections = { weir: redisStore(url), redis: new Redis(url) }
const limited = await MIDDLEWARE[middleware]()
const handlers = await Promise.all(
  phases.map(({ limit, window }, at) => limited(kind, { name: `phase${at}`, limit, interval: window }, connections)),
)

const until = (time: number) => new Promise((resolve) => setTimeout(resolve, time - Date.now()))

/** Sends requests of addresses that differ between the phases. */
async function run(at: number, from: number): Promise<PhaseResult> {
  const handle = handlers[at] as (typeof handlers)[number]
  const { keys, requests, busy } = phases[at] as Phase
  const waits: number[] = []
  let allowed = 0
  const request = async (key: number) => {
    const begin = performance.now()
    const isAllowed = await handle(`10.${at}.${key >> 8}.${key & 255}`)
    waits.push(performance.now() - begin)
    if (isAllowed) allowed++
  }
  const all: Promise<void>[] = []
  for (let made = 0; made < requests; ) {
    const due = Math.min(requests, Math.floor(((Date.now() - from) / busy) * requests))
    for (; made < due; made++) {
      // Processes start at different keys, and meet at each.
      all.push(request((made * 7 + process.pid * 101) % keys))
      // A request that needs no reply of a server ends before the next one begins.
      await new Promise((resolve) => setImmediate(resolve))
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(all)
  return { allowed, p50: percentile(waits, 0.5), p99: percentile(waits, 0.99) }
}

process.once('message', async (starts: readonly number[]) => {
  const results: PhaseResult[] = []
  for (const at of phases.keys()) {
    await until(starts[at] as number)
    results.push(await run(at, starts[at] as number))
    await until(starts[at + 1] as number)
  }
  report(results)
  process.exit(0)
})
// The connections and all code are in use before the first phase.
for (const handle of handlers) for (let i = 0; i < 200; i++) await handle(`10.99.0.${i}`)
process.send?.('ready')
