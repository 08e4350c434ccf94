import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { round } from '../harness/report.ts'
import { median, percentile } from '../harness/statistics.ts'
import type { SyncResult } from './program.ts'

/** A span's end with a million keys to send. */
export const sync: Bench = async ({ rounds, quick }) => {
  const keys = quick ? 100_000 : 1_000_000
  const results: SyncResult[] = []
  const p99: number[] = []
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    const server = await RedisServer.start()
    const other = new Redis({ port: server.port, host: '127.0.0.1' })
    const waits: { at: number; wait: number }[] = []
    let running = true
    const ping = async () => {
      while (running) {
        const begin = performance.now()
        await other.ping()
        waits.push({ at: begin, wait: performance.now() - begin })
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
    }
    const pings = ping()
    try {
      const result = await runProgram<SyncResult>('sync', { port: server.port, keys })
      const end = performance.now()
      results.push(result)
      // Those that fell into the exchange, which ends with the program.
      const during = waits.filter(({ at }) => at >= end - result.seconds * 1000 - 200).map(({ wait }) => wait)
      p99.push(percentile(during, 0.99))
    } finally {
      running = false
      await pings
      other.disconnect()
      await server.stop()
    }
  }
  const of = (figure: keyof SyncResult) => median(results.map((result) => result[figure]))
  const rows = [
    { figure: 'keys sent', value: of('keys') },
    { figure: 'seconds', value: round(of('seconds')) },
    { figure: 'event loop held, longest, ms', value: round(of('held')) },
    { figure: 'event loop held, 99.9 %, ms', value: round(of('mostlyHeld')) },
    { figure: 'CPU of one turn of the event loop, most, ms', value: round(of('turn')) },
    { figure: 'Redis CPU for each key, µs', value: round(of('redis')) },
    { figure: 'the same by pipelined INCRBY and PEXPIRE, µs', value: round(of('plain')) },
    { figure: 'Redis commands for each key, inside scripts', value: round(of('commands')) },
    { figure: 'Redis memory for each key and node, bytes', value: round(of('memory')) },
    { figure: 'CPU of the node for each key, µs', value: round(of('client')) },
    { figure: 'PING of another client meanwhile, 99 %, ms', value: round(median(p99)) },
  ]
  const goals = [
    { what: 'event loop held, ms', value: of('held'), most: 5 },
    { what: 'Redis CPU, times INCRBY and PEXPIRE', value: of('redis') / of('plain'), most: 4 },
    { what: 'commands for each key', value: of('commands'), most: 6 },
    { what: 'PING of another client, 99 %, ms', value: median(p99), most: 5 },
  ]
  return [{ title: `Exchange of ${keys.toLocaleString('en')} keys`, rows, goals }]
}
