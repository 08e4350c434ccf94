import { readFileSync } from 'node:fs'
import { fixedWindow, systemClock } from '@weir/core'
import type { Decider, Ordinal, StoreConnection } from '@weir/core/sync'
import { etcdStore } from '@weir/etcd'
import { input, report } from '../harness/child.ts'

export interface EtcdInput {
  readonly url: string
  readonly pid: number
  /** The keys of a sync, or the number of processes that send requests for one key to the store. */
  readonly work: { readonly keys: number } | { readonly nodes: number }
  readonly seconds: number
}

export interface EtcdResult {
  /** Syncs, or decisions. */
  readonly done: number
  readonly perSecond: number
  /** Milliseconds for each of them. */
  readonly p50: number
  readonly p99: number
  /** CPU microseconds of etcd for each key or decision. */
  readonly cpu: number
  /** Bytes by which the history of etcd grows for each key or decision. */
  readonly history: number
}

/** Microseconds of one tick of the kernel's clock that measures processes. */
const TICK = 10_000
const TOGETHER = 50

const { url, pid, work, seconds } = input<EtcdInput>()

function cpuOf(process: number): number {
  const fields = readFileSync(`/proc/${process}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * TICK
}

async function sizeOf(): Promise<number> {
  const response = await fetch(`${url}/v3/maintenance/status`, { method: 'POST', body: '{}' })
  return Number(((await response.json()) as { readonly dbSizeInUse: string }).dbSizeInUse)
}

function connect(name: string): StoreConnection {
  const store = etcdStore(url, { namespace: `bench-${process.pid}`, timeout: 10_000 })
  return store.open({ id: `${name}-${process.pid}`, clock: systemClock, announced: () => {} })
}

const times: number[] = []
async function timed(run: () => Promise<unknown>): Promise<void> {
  const begun = performance.now()
  await run()
  times.push(performance.now() - begun)
}

/** The work of each loop that runs beside the others, and the number of units in one pass. */
let loops: (() => Promise<unknown>)[]
let units: number
if ('keys' in work) {
  const node = connect('node')
  const policy = { id: 'bench', width: 3_600_000, cells: 1, limit: 1e9, hot: Number.POSITIVE_INFINITY, ttl: 3_600_000 }
  const ordinal = Math.floor(Date.now() / policy.width) as Ordinal
  let taken = 0
  const exchange = (): Promise<unknown> => {
    const cells = [{ ordinal, taken: ++taken, given: 0 }]
    return node.sync({ entries: Array.from({ length: work.keys }, (_, i) => ({ policy, key: `user:${i}`, cells })), blocks: [] })
  }
  loops = [exchange]
  units = work.keys
} else {
  const { step } = fixedWindow()
  if (step === undefined) throw new Error('A fixed window has a step.')
  const limit = 1e9
  const parameters = step.parameters({ name: 'bench', id: 'bench', limit, interval: 3_600_000 } as Parameters<typeof step.parameters>[0])
  const policy = { id: 'bench', step, parameters }
  const deciders = await Promise.all(Array.from({ length: work.nodes }, (_, i) => connect(`node${i}`).decider?.() as Promise<Decider>))
  let sequence = 0
  loops = deciders.flatMap((decider) =>
    Array.from({ length: TOGETHER }, () => () => {
      const time = Date.now()
      const question = { policy, key: 'k', kind: 'take' as const, units: 1, limit, at: time }
      return decider.decide({ sequence: ++sequence, time, questions: [question] })
    }),
  )
  units = 1
}

// The first call of each loop makes connections and leases.
await Promise.all(loops.map((run) => run()))
const [cpu, size, begun] = [cpuOf(pid), await sizeOf(), performance.now()]
const until = begun + 1_000 * seconds
await Promise.all(
  loops.map(async (run) => {
    while (performance.now() < until) await timed(run)
  }),
)
const passed = performance.now() - begun
const done = times.length
times.sort((a, b) => a - b)
const at = (part: number): number => times[Math.min(done - 1, Math.floor(part * done))] ?? Number.NaN
report({
  done,
  perSecond: (1_000 * done) / passed,
  p50: at(0.5),
  p99: at(0.99),
  cpu: (cpuOf(pid) - cpu) / (done * units),
  history: ((await sizeOf()) - size) / (done * units),
} satisfies EtcdResult)
