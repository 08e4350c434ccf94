import { RedisServer } from '@weir/tooling/redis-servers'
import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import type { WindowsResult } from './program.ts'

/** The cost of a sync of a key for Redis, by window. */
export const windows: Bench = async ({ rounds }) => {
  const results: WindowsResult[] = []
  for (let round = 0; round < rounds; round++) {
    const server = await RedisServer.start()
    try {
      results.push(await runProgram<WindowsResult>('windows', { port: server.port, keys: 500 }))
    } finally {
      await server.stop()
    }
  }
  const row = (what: string, figure: keyof WindowsResult) => ({
    'for each key': what,
    'Redis CPU, µs': round(median(results.map((result) => result[figure]))),
    'times INCRBY and PEXPIRE': round(median(results.map((result) => result[figure] / result.plain))),
  })
  const rows = [
    row('pipelined INCRBY and PEXPIRE', 'plain'),
    row('fixed window, something to send', 'fixed'),
    row('sliding window, 30 of 30 sub-windows in use, something to send', 'sliding'),
    row('the same, only asking', 'asking'),
    row('token bucket, twelve nodes, something to send', 'bucket'),
  ]
  const bytes = median(results.map(({ bucketBytes }) => bucketBytes))
  const goals = [
    { what: 'token bucket: Redis CPU for each key, µs', value: median(results.map(({ bucket }) => bucket)), most: 40 },
    { what: 'token bucket: bytes of a key in Redis', value: bytes, most: 700 },
  ]
  return [{ title: 'What an exchange takes Redis, 500 keys in a batch, 3 nodes', rows, goals }]
}
