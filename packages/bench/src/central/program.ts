import { Redis } from 'ioredis'
import { input, report } from '../harness/child.ts'
import { median, percentile } from '../harness/statistics.ts'
import { CONTENDERS, type ContenderName, LIMIT } from './contenders.ts'

export interface CentralInput {
  readonly port: number
  readonly contender: ContenderName
  /** Decisions that are made one after the other, and decisions of which `IN_FLIGHT` are in flight at once. */
  readonly single: number
  readonly many: number
}

export interface CentralResult {
  /** Milliseconds from a request to its decision, one at a time. */
  readonly p50: number
  readonly p99: number
  /** CPU time of Redis, in microseconds for each decision. */
  readonly redis: number
  /** CPU time of this process, in microseconds for each decision. */
  readonly client: number
  /** Commands that the client sends to Redis for each decision. */
  readonly sent: number
  /** Commands that scripts call in Redis for each decision. Heartbeats are included. */
  readonly inside: number
}

const IN_FLIGHT = 50
const KEYS = 1000
/** Decisions until all code is compiled. Before that, the slowest of a hundred would be the ones during which the compiler works. */
const WARM_UP = 20_000

const { port, contender, single, many } = input<CentralInput>()
if ((WARM_UP + single + many) / KEYS > LIMIT) throw new Error('Keys would come to their limit')
const admin = new Redis({ port, host: '127.0.0.1' })

/** Counts the commands of all clients of this process, except those of the measurement itself. */
let sent = 0
const { sendCommand } = Redis.prototype
Redis.prototype.sendCommand = function (this: Redis, ...args: Parameters<typeof sendCommand>) {
  if (this !== admin) sent++
  return sendCommand.apply(this, args)
}

/** CPU microseconds of Redis, and the number of its commands, including commands of scripts. */
async function info(): Promise<{ cpu: number; calls: number }> {
  const text = String(await admin.info('everything'))
  const number = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1])
  let calls = 0
  for (const [, count] of text.matchAll(/^cmdstat_(?!info:)[^:]+:calls=(\d+)/gm)) calls += Number(count)
  return { cpu: (number('used_cpu_user') + number('used_cpu_sys')) * 1e6, calls }
}

const redis = new Redis({ port, host: '127.0.0.1' })
const decides = await CONTENDERS[contender](redis)
let asked = 0
async function decide(): Promise<void> {
  const key = `user:${asked++ % KEYS}`
  if (!(await decides(key))) throw new Error(`${contender} has rejected ${key}`)
}

// The warm-up also creates each key.
for (let i = 0; i < WARM_UP; i++) await decide()

const waits: number[] = []
const commands: number[] = []
for (let i = 0; i < single; i++) {
  const sentBefore = sent
  const begin = performance.now()
  await decide()
  waits.push(performance.now() - begin)
  commands.push(sent - sentBefore)
}

const before = await info()
sent = 0
const cpu = process.cpuUsage()
const last = asked + many
await Promise.all(
  Array.from({ length: IN_FLIGHT }, async () => {
    while (asked < last) await decide()
  }),
)
const { user, system } = process.cpuUsage(cpu)
const own = sent
const after = await info()

const result: CentralResult = {
  p50: percentile(waits, 0.5),
  p99: percentile(waits, 0.99),
  redis: (after.cpu - before.cpu) / many,
  client: (user + system) / many,
  // The median leaves out heartbeats, which belong to no decision.
  sent: median(commands),
  inside: (after.calls - before.calls - own) / many,
}
report(result)
process.exit(0)
