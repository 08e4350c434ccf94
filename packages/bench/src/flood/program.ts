import { randomFillSync } from 'node:crypto'
import { createThrottler, memoryStore, type Overflow } from '@weir/core'
import { input, report } from '../harness/child.ts'
import { percentile } from '../harness/statistics.ts'

export interface FloodInput {
  readonly overflow: Overflow
  /** Random keys, each used once. */
  readonly keys: number
  readonly maxKeys: number
}

export interface FloodResult {
  /** Heap and buffers after a collection, in MiB: when the table has just become full, and the most and the least afterwards. */
  readonly full: number
  readonly most: number
  readonly least: number
  /** CPU of a turn of the event loop with 2,000 decisions, 99th percentile, in milliseconds: with known keys alone, and in the flood. */
  readonly before: number
  readonly during: number
  /** The part of the manually blocked keys that were still blocked at the end. */
  readonly blocked: number
  /** Known keys that were in use all the time but lost their counts. */
  readonly forgotten: number
  /** The reason of the decision for a new key at the end, and the number of allowed requests of a thousand. */
  readonly reason: string
  readonly allowed: number
}

const { overflow, keys, maxKeys } = input<FloodInput>()
const LIMIT = 1_000
const BLOCKED = 100
const KNOWN = 1_000
/** Decisions in one turn of the event loop. */
const TURN = 2_000
const COLLECTIONS = 10

const collect = globalThis.gc
if (collect === undefined) throw new Error('Run with --expose-gc')

const throttler = createThrottler({ policies: [{ limit: LIMIT, interval: '1h' }], store: memoryStore(), maxKeys, overflow }).start()
const bytes = new Uint8Array(16 * TURN)

function randomKeys(): string[] {
  randomFillSync(bytes)
  const text = Buffer.from(bytes.buffer).toString('latin1')
  return Array.from({ length: TURN }, (_, i) => text.slice(16 * i, 16 * (i + 1)))
}

/**
 * Runs turns, each with one request of a known key, and records the CPU milliseconds of each. On an idle machine the event loop is
 * blocked for this time.
 */
async function turns(count: number, keysOf: () => readonly string[], took: number[]): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    const last = process.cpuUsage()
    for (const key of keysOf()) throttler.check(key)
    throttler.check(`known-${turn % KNOWN}`)
    await new Promise((resolve) => setImmediate(resolve))
    const { user, system } = process.cpuUsage(last)
    took.push((user + system) / 1000)
  }
}

function used(): number {
  collect?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 2 ** 20
}

for (let i = 0; i < BLOCKED; i++) throttler.block(`blocked-${i}`, '1h')
for (let i = 0; i < KNOWN; i++) for (let unit = 0; unit < LIMIT / 2; unit++) throttler.check(`known-${i}`)

const count = Math.ceil(keys / TURN)
// This makes as many strings as the flood, so that the garbage is the same.
const knownKeys = (): string[] => randomKeys().map((_, i) => `known-${i % KNOWN}`)
// The first turns compile the code, so they are not recorded.
await turns(Math.ceil(count / 20), knownKeys, [])
const before: number[] = []
await turns(Math.ceil(count / 10), knownKeys, before)

const memory: number[] = []
const each = Math.ceil(count / COLLECTIONS)
const during: number[] = []
let full = 0
for (let part = 0; part < COLLECTIONS; part++) {
  await turns(each, randomKeys, during)
  const now = used()
  if (full === 0 && (part + 1) * each * TURN > maxKeys) full = now
  else if (full > 0) memory.push(now)
}

let blocked = 0
for (let i = 0; i < BLOCKED; i++) if (!throttler.check(`blocked-${i}`).allowed) blocked++
let forgotten = 0
for (let i = 0; i < KNOWN; i++) if (throttler.peek(`known-${i}`).remaining > LIMIT / 2) forgotten++
let allowed = 0
let reason = ''
for (let i = 0; i < 1_000; i++) {
  const decision = throttler.check(`new-${i}`)
  if (decision.allowed) allowed++
  reason = decision.reason
}
await throttler.close()
const result: FloodResult = {
  full,
  most: Math.max(...memory),
  least: Math.min(...memory),
  before: percentile(before, 0.99),
  during: percentile(during, 0.99),
  blocked: blocked / BLOCKED,
  forgotten,
  reason,
  allowed,
}
report(result)
process.exit(0)
