import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createThrottler, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { redisStore } from '@weir/redis'
import { Redis } from 'ioredis'
import { input, report } from '../harness/child.ts'

export interface SyncInput {
  readonly port: number
  readonly keys: number
  /** Whether each key passes a quarter of its limit, so that it is announced and marked as hot. */
  readonly hot: boolean
}

/** A start and an end, in milliseconds since the Unix epoch. */
export type Stretch = readonly [number, number]

export interface SyncResult {
  /** The times in which the keys were synced, and in which they were written the plain way. */
  readonly exchange: Stretch
  readonly plainly: Stretch
  /** The longest time for which the event loop was blocked, in milliseconds: in all, and in 99.9 % of the samples. */
  readonly held: number
  readonly mostlyHeld: number
  /** The most CPU milliseconds of the process in one turn of the event loop, including its threads for garbage collection. */
  readonly turn: number
  /** Redis CPU microseconds for each key, for Weir and for a pipelined INCRBY and PEXPIRE. */
  readonly redis: number
  readonly plain: number
  /** Redis memory for each key and process, in bytes. */
  readonly memory: number
  /** Commands inside scripts for each key. */
  readonly commands: number
  /** This process's CPU microseconds for each key. */
  readonly client: number
  readonly keys: number
}

const { port, keys, hot } = input<SyncInput>()
const collect = globalThis.gc
if (collect === undefined) throw new Error('Run with --expose-gc')
const admin = new Redis({ port, host: '127.0.0.1' })
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const INTERVAL = 120_000
const SPANS = 6
const LIMIT = 100
/**
 * With 4 processes this is less than a quarter of the limit in all. But it is so much in this process that the key is not far below
 * its limit, nor due before its span's end.
 */
const USUAL = { units: 8, idleNodes: 3 }
/** More than a quarter of the limit, in the only process. */
const HOT = { units: 30, idleNodes: 0 }
const { units, idleNodes } = hot ? HOT : USUAL

async function info(): Promise<{ cpu: number; memory: number; calls: number }> {
  const text = String(await admin.call('INFO', 'everything'))
  const number = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1])
  let calls = 0
  for (const [, name, count] of text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    if (!['evalsha', 'eval', 'info', 'ping', 'script|load', 'hello', 'client|setinfo', 'subscribe'].includes(name as string))
      calls += Number(count)
  }
  return { cpu: (number('used_cpu_user') + number('used_cpu_sys')) * 1e6, memory: number('used_memory'), calls }
}

// The plain way comes first: one counter for each key, written in pipelines of a thousand.
const plainBegan = Date.now()
const plainBefore = await info()
for (let id = 0; id < keys; ) {
  const pipeline = admin.pipeline()
  for (const end = Math.min(keys, id + 1000); id < end; id++) {
    pipeline.incrby(`plain:user:${id}:28000000`, 1)
    pipeline.pexpire(`plain:user:${id}:28000000`, INTERVAL)
  }
  await pipeline.exec()
}
const plainAfter = await info()
const plainEnded = Date.now()
await admin.flushall()

function open(maxKeys: number): Throttler {
  const throttler = createThrottler({ policies: [{ limit: LIMIT, interval: INTERVAL, spans: SPANS }], store: redisStore(admin), maxKeys })
  return throttler.start()
}
const throttler = open(keys + 1)
const idle = Array.from({ length: idleNodes }, () => open(1000))
let entries = 0
throttler.on('sync', (exchange) => {
  entries += exchange.entries
})
const sent = () => entries
const ready = () => throttler.state === 'synced' && snapshot(throttler).nodes === 1 + idle.length
for (let i = 0; i < 300 && !ready(); i++) await pause(20)
if (!ready()) throw new Error('Redis does not answer')
// The keys are counted after the last span's counts have been sent, and early enough to finish before the next span ends. The last
// span of an interval is left out, because another interval starts after it.
const SPAN = INTERVAL / SPANS
const spanNow = () => Math.floor(Date.now() / SPAN)
const intoSpan = () => (Date.now() % SPAN) / SPAN
while (intoSpan() < 0.12 || intoSpan() > 0.4 || spanNow() % SPANS === SPANS - 1) await pause(20)
const span = spanNow()
for (let id = 0; id < keys; ) {
  for (const end = Math.min(keys, id + 5000); id < end; id++) {
    if (!throttler.check(`user:${id}`, units).allowed) throw new Error('rejected')
  }
  await pause(0)
}
if (spanNow() !== span) throw new Error('It took longer than a span to count the keys.')
// A million keys within a second leave garbage for the collector. It is collected before the sync is measured.
collect()
if (sent() > keys / 10) throw new Error(`${sent()} keys were sent too early`)
for (const early = sent(); sent() === early; ) await pause(5)
// The first reading comes after the wait, which costs Redis something as well.
const before = await info()
const already = sent()
const cpu = process.cpuUsage()
const began = Date.now()
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
// The CPU time between two calls of a timer. The process rests in between, because a spinning loop would take the second core from
// Redis.
let turn = 0
let last = process.cpuUsage()
const turns = setInterval(() => {
  const { user, system } = process.cpuUsage(last)
  turn = Math.max(turn, (user + system) / 1000)
  last = process.cpuUsage()
}, 1)
for (let i = 0; i < 2400 && sent() < keys; i++) await pause(50)
clearInterval(turns)
delays.disable()
const ended = Date.now()
const { user, system } = process.cpuUsage(cpu)
const after = await info()
const written = sent() - already
if (written < 0.9 * keys) throw new Error(`Only ${written} of ${keys} keys were sent`)

const result: SyncResult = {
  exchange: [began, ended],
  plainly: [plainBegan, plainEnded],
  // The monitor's own timer waits for a millisecond, which is subtracted.
  held: delays.max / 1e6 - 1,
  mostlyHeld: delays.percentile(99.9) / 1e6 - 1,
  turn,
  redis: (after.cpu - before.cpu) / written,
  plain: (plainAfter.cpu - plainBefore.cpu) / keys,
  memory: (after.memory - before.memory) / written,
  commands: (after.calls - before.calls) / written,
  client: (user + system) / written,
  keys: written,
}
report(result)
process.exit(0)
