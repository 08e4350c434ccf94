import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { type Goal, type Report, round } from '../harness/report.ts'
import { median, percentile } from '../harness/statistics.ts'
import type { Stretch, SyncInput, SyncResult } from './program.ts'

interface Measured extends Omit<SyncResult, 'exchange' | 'plainly'> {
  /** Seconds from the first to the last sync. */
  readonly seconds: number
  /**
   * The 99th percentile of the latency of `PING` for another client, in milliseconds: meanwhile, and while the keys were written
   * the plain way.
   */
  readonly ping: number
  readonly plainPing: number
  /** The longest time for which this nearly idle process got no core meanwhile, in milliseconds. */
  readonly idleHeld: number
}

/** The end of a span with a million keys to send: keys that are merely due, and the extreme, in which all of them come near their limit. */
export const sync: Bench = async ({ rounds, quick }) => {
  const keys = quick ? 100_000 : 1_000_000
  const due: Measured[] = []
  const hot: Measured[] = []
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    due.push(await measure(keys, false))
    hot.push(await measure(keys, true))
  }
  return [
    { ...table(`Exchange of ${keys.toLocaleString('en')} keys that are due`, due), goals: goalsOf(due) },
    { ...table(`Exchange of ${keys.toLocaleString('en')} keys that all become hot`, hot), goals: [] },
  ]
}

async function measure(keys: number, hot: boolean): Promise<Measured> {
  const server = await RedisServer.start()
  const other = new Redis({ port: server.port, host: '127.0.0.1' })
  const waits: { at: number; wait: number }[] = []
  let running = true
  const ping = async () => {
    while (running) {
      const [at, begin] = [Date.now(), performance.now()]
      await other.ping()
      waits.push({ at, wait: performance.now() - begin })
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
  const pings = ping()
  const turns: { at: number; held: number }[] = []
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    turns.push({ at: Date.now(), held: now - last - 1 })
    last = now
  }, 1)
  try {
    const input: SyncInput = { port: server.port, keys, hot }
    const { exchange, plainly, ...result } = await runProgram<SyncResult>('sync', input, { execArgv: ['--expose-gc'] })
    const during = ([from, to]: Stretch) => {
      const found = waits.filter(({ at }) => at >= from && at <= to)
      return percentile(
        found.map(({ wait }) => wait),
        0.99,
      )
    }
    const idleHeld = Math.max(...turns.filter(({ at }) => at >= exchange[0] && at <= exchange[1]).map(({ held }) => held))
    return { ...result, seconds: (exchange[1] - exchange[0]) / 1000, ping: during(exchange), plainPing: during(plainly), idleHeld }
  } finally {
    running = false
    clearInterval(timer)
    await pings
    other.disconnect()
    await server.stop()
  }
}

const medianOf = (results: readonly Measured[], figure: keyof Measured): number => median(results.map((result) => result[figure]))

function table(title: string, results: readonly Measured[]): Pick<Report, 'title' | 'rows'> {
  const of = (figure: keyof Measured) => medianOf(results, figure)
  const rows = [
    { figure: 'keys sent', value: of('keys') },
    { figure: 'seconds', value: round(of('seconds')) },
    { figure: 'event loop held, longest, ms', value: round(of('held')) },
    { figure: 'event loop held, 99.9 %, ms', value: round(of('mostlyHeld')) },
    { figure: 'the same in a process with nothing to do, longest, ms', value: round(of('idleHeld')) },
    { figure: 'CPU while the event loop was held once, most, ms', value: round(of('turn')) },
    { figure: 'Redis CPU for each key, µs', value: round(of('redis')) },
    { figure: 'the same by pipelined INCRBY and PEXPIRE, µs', value: round(of('plain')) },
    { figure: 'Redis CPU, times INCRBY and PEXPIRE', value: round(of('redis') / of('plain')) },
    { figure: 'Redis commands for each key, inside scripts', value: round(of('commands')) },
    { figure: 'Redis memory for each key and node, bytes', value: round(of('memory')) },
    { figure: 'CPU of the node for each key, µs', value: round(of('client')) },
    { figure: 'PING of another client meanwhile, 99 %, ms', value: round(of('ping')) },
    { figure: 'the same beside the pipelines, ms', value: round(of('plainPing')) },
  ]
  return { title, rows }
}

function goalsOf(results: readonly Measured[]): readonly Goal[] {
  const of = (figure: keyof Measured) => medianOf(results, figure)
  return [
    { what: 'event loop held, ms', value: of('held'), most: 5 },
    { what: 'Redis CPU, times INCRBY and PEXPIRE', value: of('redis') / of('plain'), most: 4 },
    { what: 'commands for each key', value: of('commands'), most: 6 },
    { what: 'PING of another client, 99 %, ms', value: of('ping'), most: 5 },
  ]
}
