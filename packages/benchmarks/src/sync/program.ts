import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createThrottler } from '@weir/core'
import { redisStore } from '@weir/redis'
import { Redis } from 'ioredis'
import { input, report } from '../harness/child.ts'

export interface SyncInput {
  readonly port: number
  readonly keys: number
}

export interface SyncResult {
  /** Seconds from the first to the last exchange. */
  readonly seconds: number
  /** Longest time for which the event loop was held, milliseconds: in all, and 99.9 % of the time. */
  readonly held: number
  readonly mostlyHeld: number
  /** Most CPU milliseconds of one turn of the event loop: what holds it on a machine that does nothing else. */
  readonly turn: number
  /** Redis CPU microseconds for each key, ours and those of a pipelined INCRBY and PEXPIRE. */
  readonly redis: number
  readonly plain: number
  /** Redis memory for each key and node, bytes. */
  readonly memory: number
  /** Commands inside scripts for each key. */
  readonly commands: number
  /** This process's CPU microseconds for each key. */
  readonly client: number
  readonly keys: number
}

const { port, keys } = input<SyncInput>()
const admin = new Redis({ port, host: '127.0.0.1' })
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

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

// The plain way first: one counter for each key, written in pipelines of a thousand.
const plainBefore = await info()
for (let id = 0; id < keys; ) {
  const pipeline = admin.pipeline()
  for (const end = Math.min(keys, id + 1000); id < end; id++) {
    pipeline.incrby(`plain:user:${id}:28000000`, 1)
    pipeline.pexpire(`plain:user:${id}:28000000`, 120_000)
  }
  await pipeline.exec()
}
const plainAfter = await info()
await admin.flushall()

const throttler = createThrottler({
  policies: [{ limit: 100, interval: '2m', spans: 6 }],
  store: redisStore(admin),
  maxKeys: keys + 1,
})
let entries = 0
throttler.on('sync', (exchange) => {
  entries += exchange.entries
})
const sent = () => entries
throttler.start()
for (let i = 0; i < 100 && throttler.state !== 'synced'; i++) await pause(20)
if (throttler.state !== 'synced') throw new Error('Redis does not answer')
// Enough of the limit that a key is not quiet, too little for an exchange before the span's end.
for (let id = 0; id < keys; ) {
  for (const end = Math.min(keys, id + 5000); id < end; id++) if (!throttler.check(`user:${id}`, 30).allowed) throw new Error('refused')
  await pause(0)
}
const before = await info()
if (sent() > keys / 10) throw new Error(`${sent()} keys were sent too early`)
const already = sent()
while (sent() === already) await pause(5)
const cpu = process.cpuUsage()
const begin = performance.now()
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
let turn = 0
let spinning = true
let last = process.cpuUsage()
// Round and round: each turn of the loop is one step.
const step = () => {
  const { user, system } = process.cpuUsage(last)
  turn = Math.max(turn, (user + system) / 1000)
  last = process.cpuUsage()
  if (spinning) setImmediate(step)
}
step()
for (let i = 0; i < 2400 && sent() < keys; i++) await pause(50)
spinning = false
delays.disable()
const seconds = (performance.now() - begin) / 1000
const { user, system } = process.cpuUsage(cpu)
const after = await info()
const written = sent() - already
if (written < 0.9 * keys) throw new Error(`Only ${written} of ${keys} keys were sent`)

const result: SyncResult = {
  seconds,
  // The monitor's own timer waits for a millisecond.
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
