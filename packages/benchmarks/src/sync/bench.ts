import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { round } from '../harness/report.ts'
import { median, percentile } from '../harness/statistics.ts'
import type { SyncResult } from './program.ts'

/** Units of a limit of 100: as many as hold all of it by the interval's end; and enough to be announced as hot. */
const STEADY = 20
const HOT = 30

/** A span's end with a million keys to send. */
export const sync: Bench = async ({ rounds, quick }) => {
  const keys = quick ? 100_000 : 1_000_000
  const steady = await measure(keys, STEADY, Math.min(rounds, 3))
  const hot = await measure(keys, HOT, Math.min(rounds, 3))
  const rows = FIGURES.map(([figure, of]) => ({ figure, value: of(steady), 'all become hot': of(hot) }))
  const goals = [
    { what: 'event loop held, ms', value: steady.held, most: 5 },
    { what: 'Redis CPU, times INCRBY and PEXPIRE', value: steady.redis / steady.plain, most: 4 },
    { what: 'commands for each key', value: steady.commands, most: 6 },
    { what: 'PING of another client, 99 %, ms', value: steady.ping, most: 5 },
  ]
  return [{ title: `Exchange of ${keys.toLocaleString('en')} keys`, rows, goals }]
}

type Measured = SyncResult & { readonly ping: number }

const FIGURES: readonly (readonly [figure: string, of: (measured: Measured) => number])[] = [
  ['keys sent', ({ keys }) => keys],
  ['seconds', ({ seconds }) => round(seconds)],
  ['event loop held, longest, ms', ({ held }) => round(held)],
  ['event loop held, 99.9 %, ms', ({ mostlyHeld }) => round(mostlyHeld)],
  ['CPU of one turn of the event loop, most, ms', ({ turn }) => round(turn)],
  ['Redis CPU for each key, µs', ({ redis }) => round(redis)],
  ['the same by pipelined INCRBY and PEXPIRE, µs', ({ plain }) => round(plain)],
  ['Redis commands for each key, inside scripts', ({ commands }) => round(commands)],
  ['Redis memory for each key and node, bytes', ({ memory }) => round(memory)],
  ['CPU of the node for each key, µs', ({ client }) => round(client)],
  ['PING of another client meanwhile, 99 %, ms', ({ ping }) => round(ping)],
]

/** Medians of some runs, each with a server and processes of its own. */
async function measure(keys: number, units: number, rounds: number): Promise<Measured> {
  const results: Measured[] = []
  for (let round = 0; round < rounds; round++) results.push(await run(keys, units))
  const [first] = results as [Measured]
  const names = Object.keys(first) as (keyof Measured)[]
  return Object.fromEntries(names.map((name) => [name, median(results.map((result) => result[name]))])) as unknown as Measured
}

async function run(keys: number, units: number): Promise<Measured> {
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
    const result = await runProgram<SyncResult>('sync', { port: server.port, keys, units })
    const end = performance.now()
    // Those that fell into the exchange, which ends with the program.
    const during = waits.filter(({ at }) => at >= end - result.seconds * 1000 - 200).map(({ wait }) => wait)
    return { ...result, ping: percentile(during, 0.99) }
  } finally {
    running = false
    await pings
    other.disconnect()
    await server.stop()
  }
}
