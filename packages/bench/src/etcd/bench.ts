import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { type Row, round } from '../harness/report.ts'
import type { EtcdInput, EtcdResult } from './program.ts'

const EXCHANGES = [1, 40, 1_000]
const NODES = [1, 4]

async function measured(work: EtcdInput['work'], rounds: number, seconds: number): Promise<Readonly<Record<string, number>>> {
  const results: EtcdResult[] = []
  for (let i = 0; i < rounds; i++) {
    // Each round starts a new server, because etcd gets slower with its history.
    const server = await EtcdServer.start()
    results.push(await runProgram<EtcdResult>('etcd', { url: server.url, pid: server.pid ?? 0, work, seconds } satisfies EtcdInput))
    await server.stop()
  }
  const median = (of: (result: EtcdResult) => number): number => round(results.map(of).sort((a, b) => a - b)[rounds >> 1] ?? Number.NaN)
  return {
    'a second': median((one) => one.perSecond),
    'p50 ms': median((one) => one.p50),
    'p99 ms': median((one) => one.p99),
    'CPU of etcd, µs each': median((one) => one.cpu),
    'history, bytes each': median((one) => one.history),
  }
}

/** The speed of an etcd of one member with its data in memory. A disk adds its own time to each write. */
export const etcd: Bench = async ({ rounds, quick }) => {
  if (NO_ETCD !== undefined) return [{ title: `etcd: ${NO_ETCD}`, rows: [] }]
  const seconds = quick ? 2 : 5
  const exchanges: Row[] = []
  for (const keys of EXCHANGES) exchanges.push({ 'keys of an exchange': keys, ...(await measured({ keys }, rounds, seconds)) })
  const decisions: Row[] = []
  for (const nodes of NODES) decisions.push({ 'nodes that ask about one key': nodes, ...(await measured({ nodes }, rounds, seconds)) })
  return [
    { title: 'Exchanges with etcd; CPU and history for each key', rows: exchanges },
    { title: 'Decided at etcd, 50 requests at a time for each node', rows: decisions },
  ]
}
