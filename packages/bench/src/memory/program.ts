import {
  type Algorithm,
  createThrottler,
  fixedWindow,
  leakyBucket,
  type PolicyOptions,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { MemoryStore } from 'express-rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { input, report } from '../harness/child.ts'

export interface MemoryInput {
  readonly contender: string
  readonly keys: number
}

/** Bytes for each key, heap and buffers together. */
export interface MemoryResult {
  /** With the key's string. */
  readonly total: number
  /** Without the bytes of the strings. */
  readonly beyond: number
  /** Bytes left for each key after all keys were idle for long enough. Undefined if the program didn't wait. */
  readonly left: number | undefined
  /** Timers of the process. */
  readonly timers: number
}

const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  "weir, fixedWindow({ start: 'first-request' })": fixedWindow({ start: 'first-request' }),
  'weir, slidingCounter()': slidingCounter(),
  'weir, tokenBucket()': tokenBucket(),
  'weir, tokenBucket({ warmUp })': tokenBucket({ warmUp: '1m' }),
  'weir, leakyBucket()': leakyBucket(),
  'weir, slidingWindow()': slidingWindow(),
  'weir, slidingLog(), one request each': slidingLog(),
  'weir, slidingLog(), ten requests each': slidingLog(),
}

const { contender, keys } = input<MemoryInput>()
const HOUR = 3_600_000
const collect = globalThis.gc
if (collect === undefined) throw new Error('Run with --expose-gc')

async function used(): Promise<number> {
  for (let i = 0; i < 4; i++) {
    collect?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Makes a key as from a request: a flat string that shares no memory. */
const keyOf = (id: number) => Buffer.from(`user:${String(id).padStart(7, '0')}`).toString('latin1')

async function strings(): Promise<number> {
  const list: string[] = []
  for (let id = 0; id < keys; id++) list.push('')
  const before = await used()
  for (let id = 0; id < keys; id++) list[id] = keyOf(id)
  const after = await used()
  if (list.length !== keys) throw new Error('kept alive')
  return (after - before) / keys
}

const text = await strings()
let left: number | undefined
let kept: unknown
const before = await used()

if (contender === 'plain window') {
  const entries = new Map<string, { count: number; end: number }>()
  for (let id = 0; id < keys; id++) entries.set(keyOf(id), { count: 1, end: Date.now() + HOUR })
  kept = entries
} else if (contender.startsWith('weir')) {
  const idle = contender === 'weir, after they fell idle'
  const policies: PolicyOptions[] = [{ limit: 100, interval: idle ? '1s' : '1h', algorithm: ALGORITHMS[contender] ?? fixedWindow() }]
  const throttler = createThrottler({ policies, maxKeys: keys })
  const requests = contender.endsWith('ten requests each') ? 10 : 1
  for (let request = 0; request < requests; request++) for (let id = 0; id < keys; id++) throttler.check(keyOf(id))
  if (idle) {
    for (let i = 0; i < 100 && snapshot(throttler).policies[0]?.keys !== 0; i++) await new Promise((resolve) => setTimeout(resolve, 200))
    left = ((await used()) - before) / keys
  }
  kept = throttler
} else if (contender === 'express-rate-limit') {
  const store = new MemoryStore()
  store.init({ windowMs: HOUR } as Parameters<MemoryStore['init']>[0])
  for (let id = 0; id < keys; id++) await store.increment(keyOf(id))
  kept = store
} else if (contender === 'rate-limiter-flexible') {
  const limiter = new RateLimiterMemory({ points: 100, duration: HOUR / 1000 })
  for (let id = 0; id < keys; id++) await limiter.consume(keyOf(id))
  kept = limiter
} else throw new Error(`There is no contender ${contender}`)

const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
const total = ((await used()) - before) / keys
if (kept === undefined) throw new Error('kept alive')
const result: MemoryResult = { total, beyond: total - text, left, timers }
report(result)
process.exit(0)
