import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Fault, type FaultPlan, faultProxy, faults, poisson, type Scenario, simulate } from '@weir/testing'
import { RedisServer } from '@weir/tooling/redis-servers'
import type { Allowed, Busy } from './busy-node.ts'
import { sleep } from './protocol.ts'

const SCRIPT = fileURLToPath(new URL('./busy-node.ts', import.meta.url))
const EXEC_ARGV: readonly string[] = ['--conditions=@weir/source', '--import', import.meta.resolve('tsx')]

/** The actions of a trial while its processes are busy. */
interface Hands {
  readonly server: RedisServer
  /** Cuts half of the processes off from the store, or lets them reach it again. */
  cut(off: boolean): void
  /** Kills one process (−9) and starts another in its place. */
  replace(place: number): Promise<void>
}

/** A case that is run twice: by real processes and a real Redis, and in a simulation. */
export interface Trial {
  readonly name: string
  readonly nodes: number
  readonly limit: number
  /** The interval, in milliseconds. */
  readonly interval: number
  /** The multiple of the limit that is offered. */
  readonly times: number
  readonly cost: readonly [least: number, most: number]
  /** The option of the processes' throttlers. With it the processes start while the store is down, and every interval is judged. */
  readonly expectedProcesses?: number
  /** Lets the event happen in real time, and returns once it has ended. */
  happen(hands: Hands): Promise<void>
  /** The same case in a simulation. */
  readonly simulated: Pick<Scenario, 'intervals'> & Partial<Scenario>
}

/** Units beyond the limit in the worst interval, as parts of the limit. */
export interface TrialResult {
  readonly name: string
  readonly real: number
  readonly simulated: number
}

const HOUR = 3_600_000

function hangs(at: readonly number[], length: number): FaultPlan {
  return faults(...at.map((from): Fault => ({ kind: 'outage', from, until: from + length, mode: 'hang' })))
}

export const TRIALS: readonly Trial[] = [
  {
    name: 'the store hangs for 2 s, three times; 4 processes, ×20, 1000 per 10 s',
    nodes: 4,
    limit: 1_000,
    interval: 10_000,
    times: 20,
    cost: [1, 1],
    async happen({ server }) {
      for (let i = 0; i < 3; i++) {
        await sleep(6_500)
        server.pause()
        await sleep(2_000)
        server.resume()
      }
      await sleep(3_000)
    },
    simulated: { intervals: 30, faults: hangs([3.4, 6.8, 10.1, 13.5, 17.2, 20.9, 25.3], 0.2) },
  },
  {
    name: 'one of 3 processes killed (−9) every 10 s, for a minute and a half; 600 per hour, of which 20 a second are asked for',
    nodes: 3,
    limit: 600,
    interval: HOUR,
    times: 120,
    cost: [1, 1],
    async happen({ replace }) {
      for (let i = 0; i < 9; i++) {
        await sleep(10_000)
        await replace(i % 3)
      }
    },
    simulated: {
      intervals: 1,
      warmup: 0,
      faults: faults(...Array.from({ length: 9 }, (_, i): Fault => ({ kind: 'crash', at: ((i + 1) * 10_000) / HOUR, node: i % 3 }))),
    },
  },
  {
    name: 'half of 4 processes cut off for 5 s; ×20, 1000 per 10 s',
    nodes: 4,
    limit: 1_000,
    interval: 10_000,
    times: 20,
    cost: [1, 1],
    async happen({ cut }) {
      await sleep(12_000)
      cut(true)
      await sleep(5_000)
      cut(false)
      await sleep(10_000)
    },
    simulated: {
      intervals: 12,
      faults: faults(
        ...[3.2, 6.7, 10.9].flatMap((from) => [2, 3].map((node): Fault => ({ kind: 'partition', from, until: from + 0.5, node }))),
      ),
    },
  },
  {
    name: 'costs of 1 to 50; 4 processes, ×2, 100 per 2 s',
    nodes: 4,
    limit: 100,
    interval: 2_000,
    times: 2,
    cost: [1, 50],
    happen: () => sleep(40_000),
    simulated: { intervals: 60 },
  },
  coldStart(12),
  coldStart(1),
]

/** Twelve processes that start without the store, which starts after two intervals. */
function coldStart(expectedProcesses: number): Trial {
  return {
    name: `12 processes start while the store is down, expectedProcesses: ${expectedProcesses}; ×5, 1200 per 10 s`,
    nodes: 12,
    limit: 1_200,
    interval: 10_000,
    times: 5,
    cost: [1, 1],
    expectedProcesses,
    async happen({ server }) {
      await sleep(20_000)
      await server.start()
      await sleep(20_000)
    },
    simulated: {
      intervals: 5,
      warmup: 0,
      // The processes start before the first interval.
      faults: faults({ kind: 'outage', from: -1, until: 3, mode: 'reject' }),
      throttler: { expectedProcesses },
    },
  }
}

export async function runTrial(trial: Trial, seed: number): Promise<TrialResult> {
  const { name, nodes, limit, interval, times, cost, simulated } = trial
  const result = await simulate({
    policy: { limit, interval },
    nodes,
    load: poisson(times, { cost }),
    seed,
    ...simulated,
  })
  return { name, real: await runForReal(trial, seed), simulated: result.overshoot.max }
}

async function runForReal({ nodes, limit, interval, times, cost, expectedProcesses, happen }: Trial, seed: number): Promise<number> {
  const server = await RedisServer.start()
  if (expectedProcesses !== undefined) await server.kill()
  const proxy = await faultProxy({ port: server.port })
  const allowed: Allowed[] = []
  const namespace = `trial-${process.pid}-${seed}`
  let started = 0
  const start = (place: number): ChildProcess => {
    const mean = (cost[0] + cost[1]) / 2
    const rate = (times * limit * 1000) / (mean * interval * nodes)
    const port = place < nodes / 2 ? server.port : proxy.port
    const busy: Busy = {
      port,
      namespace,
      limit,
      interval,
      rate,
      cost,
      seed: seed * 1_000 + ++started,
      expectedProcesses: expectedProcesses ?? 1,
    }
    const child = fork(SCRIPT, [JSON.stringify(busy)], { execArgv: [...EXEC_ARGV] })
    child.on('message', (one) => allowed.push(one as Allowed))
    return child
  }
  const children = Array.from({ length: nodes }, (_, place) => start(place))
  const begun = Date.now()
  try {
    // Processes start one after the other on a small machine. Intervals are judged once all processes count each other.
    await sleep(Math.min(interval, SETTLING))
    await happen({
      server,
      cut: (off) => proxy.set({ halfOpen: off }),
      async replace(place) {
        children[place]?.kill('SIGKILL')
        children[place] = start(place)
      },
    })
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await proxy.close()
    await server.stop()
  }
  const units = new Map<number, number>()
  for (const { at, units: more } of allowed) {
    const ordinal = Math.floor(at / interval)
    units.set(ordinal, (units.get(ordinal) ?? 0) + more)
  }
  // In the first intervals processes may not count each other yet. They are judged only in a cold start, and if the interval is an
  // hour.
  const first = Math.floor(begun / interval)
  const judged = [...units].filter(
    ([ordinal]) => interval === HOUR || expectedProcesses !== undefined || ordinal > first + Math.ceil(SETTLING / interval) - 1,
  )
  return Math.max(0, ...judged.map(([, taken]) => (taken - limit) / limit))
}

/** Milliseconds within which all processes have started and found the store. */
const SETTLING = 8_000
