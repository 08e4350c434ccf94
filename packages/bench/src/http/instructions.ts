import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Bench } from '../harness/bench.ts'
import { CALLGRIND, collected, hasValgrind, REPEATABLE } from '../harness/callgrind.ts'
import { startProgram } from '../harness/programs.ts'
import { type Report, type Row, round } from '../harness/report.ts'
import { Load } from './load.ts'
import { PEERS } from './peers.ts'
import type { ServerInput } from './server.ts'

const CONTENDERS = ['bare', 'fields alone', 'weir', 'peer'] as const

/**
 * Instructions of a server's process for each request, without instructions of the kernel. They are counted, not timed, so they are
 * the same on a busy machine. Needs valgrind.
 */
export const instructions: Bench = async ({ quick }) => {
  if (!hasValgrind('instructions')) return []
  const reports: Report[] = []
  for (const framework of ['express', 'fastify', 'koa'] as const) {
    const bare = await perRequest({ framework, contender: 'bare', limit: 1 }, quick)
    for (const outcome of ['pass', 'reject'] as const) {
      const rows: Row[] = []
      for (const contender of CONTENDERS) {
        const limit = outcome === 'pass' ? 1e9 : 1
        const count = contender === 'bare' ? bare : await perRequest({ framework, contender, limit }, quick)
        rows.push({
          server: contender.replace('peer', PEERS[framework]),
          'instructions for each request': Math.round(count),
          'times bare': round(count / bare),
        })
      }
      reports.push({ title: `${framework}, instructions: requests that ${outcome === 'pass' ? 'pass' : 'are rejected'}`, rows })
    }
  }
  return reports
}

/** Subtracts a shorter run from a longer one, because both contain the start and the compiler's work on hot code. */
async function perRequest(input: ServerInput, quick: boolean): Promise<number> {
  const [fewer, more] = quick ? [3_000, 5_000] : [12_000, 18_000]
  const [short, long] = await Promise.all([total(input, fewer), total(input, more)])
  return (long - short) / (more - fewer)
}

/** Instructions of a server that gets `requests` requests, one after the other. */
async function total(input: ServerInput, requests: number): Promise<number> {
  const child = await startProgram('http/server', input, { under: CALLGRIND, execArgv: REPEATABLE })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    said += part
  })
  const ended = once(child, 'close')
  const [line] = (await once(createInterface(child.stdout as NodeJS.ReadableStream), 'line')) as [string]
  const load = await Load.open((JSON.parse(line) as { port: number }).port, 1)
  const statuses = await load.run(requests)
  load.close()
  child.stdin?.end()
  await ended
  const expected = input.limit === 1 && input.contender !== 'bare' ? '429' : '200'
  if ((statuses[expected] ?? 0) < requests - 1) throw new Error(`${input.contender} answered ${JSON.stringify(statuses)}, not ${expected}`)
  return collected(said)
}
