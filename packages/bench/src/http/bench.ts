import type { ChildProcess } from 'node:child_process'
import { createInterface, type Interface } from 'node:readline'
import { RedisServer } from '@weir/tooling/redis-servers'
import type { Bench } from '../harness/bench.ts'
import { startProgram } from '../harness/programs.ts'
import { type Report, type Row, round } from '../harness/report.ts'
import { median, spread } from '../harness/statistics.ts'
import { Load } from './load.ts'
import { PEERS } from './peers.ts'
import type { ServerInput } from './server.ts'

const CONTENDERS = ['bare', 'bare again', 'fields alone', 'weir', 'weir, Redis', 'peer', 'peer, Redis'] as const
const CONNECTIONS = 16

/** A server in a separate process. */
class Contender {
  readonly name: ServerInput['contender']
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  #load: Load | undefined

  private constructor(name: ServerInput['contender'], child: ChildProcess, lines: Interface) {
    this.name = name
    this.#child = child
    this.#lines = lines[Symbol.asyncIterator]()
  }

  static async start(input: ServerInput): Promise<Contender> {
    const child = await startProgram('http/server', input)
    const contender = new Contender(input.contender, child, createInterface(child.stdout as NodeJS.ReadableStream))
    const { port } = await contender.#read<{ port: number }>()
    contender.#load = await Load.open(port, CONNECTIONS)
    return contender
  }

  /** Sends requests. Returns the server's CPU microseconds for each. */
  async slice(count: number, status: string): Promise<number> {
    const before = await this.#cpu()
    const statuses = await (this.#load as Load).run(count)
    const after = await this.#cpu()
    if (statuses[status] !== count) throw new Error(`${this.name} answered ${JSON.stringify(statuses)} instead of ${count} times ${status}`)
    return (after - before) / count
  }

  /** Sends requests until the server is warm. */
  async warmUp(count: number): Promise<void> {
    for (let i = 0; i < 4; i++) await (this.#load as Load).run(count)
  }

  stop(): void {
    this.#load?.close()
    this.#child.stdin?.end()
  }

  async #cpu(): Promise<number> {
    this.#child.stdin?.write('cpu\n')
    return (await this.#read<{ cpu: number }>()).cpu
  }

  async #read<Line>(): Promise<Line> {
    const { value, done } = await this.#lines.next()
    if (done === true) throw new Error(`The server ${this.name} has ended`)
    return JSON.parse(value as string) as Line
  }
}

/** CPU time for each request of a server that answers hello, relative to the bare framework. */
export const http: Bench = async ({ rounds, quick }) => {
  const reports: Report[] = []
  for (const framework of ['express', 'fastify', 'koa'] as const) {
    for (const outcome of ['pass', 'reject'] as const) reports.push(await compare(framework, outcome, rounds, quick ? 6 : 14))
  }
  return reports
}

/** Compares contenders in new processes in each round. All run at once and get requests in turn, slice by slice. */
async function compare(framework: ServerInput['framework'], outcome: 'pass' | 'reject', rounds: number, slices: number): Promise<Report> {
  const count = 1000
  const costs = new Map<string, number[]>()
  const ratios = new Map<string, number[]>()
  for (let round = 0; round < rounds; round++) {
    const redis = await RedisServer.start()
    const contenders: Contender[] = []
    try {
      const limit = outcome === 'pass' ? 1e9 : 1
      for (const contender of CONTENDERS) contenders.push(await Contender.start({ framework, contender, limit, redis: redis.port }))
      for (const one of contenders) await one.warmUp(1500)
      for (let i = 0; i < slices; i++) {
        let bare = 0
        // Each slice begins with another contender, so that none always follows the same one.
        for (let at = 0; at < contenders.length; at++) {
          const one = contenders[(at + i) % contenders.length] as Contender
          const limited = outcome === 'reject' && !one.name.startsWith('bare')
          push(costs, one.name, await one.slice(count, limited ? '429' : '200'))
        }
        bare = costs.get('bare')?.at(-1) as number
        for (const { name } of contenders) push(ratios, name, (costs.get(name)?.at(-1) as number) / bare)
      }
    } finally {
      for (const one of contenders) one.stop()
      await redis.stop()
    }
  }
  const rows: Row[] = CONTENDERS.map((name) => {
    const ratio = spread(ratios.get(name) ?? [])
    return {
      server: name.replace('peer', PEERS[framework]),
      'CPU µs for each request': round(median(costs.get(name) ?? [])),
      'times bare': round(ratio.median),
      'min–max': `${round(ratio.min)}–${round(ratio.max)}`,
    }
  })
  const most = outcome === 'pass' ? 1.05 : 1
  const goal = (name: string) => ({ what: `${framework}, ${outcome}, ${name}: times bare`, value: median(ratios.get(name) ?? []), most })
  return {
    title: `${framework}: requests that ${outcome === 'pass' ? 'pass' : 'are rejected'}`,
    rows,
    goals: [goal('weir'), goal('weir, Redis')],
  }
}

function push(map: Map<string, number[]>, name: string, value: number): void {
  const list = map.get(name)
  if (list === undefined) map.set(name, [value])
  else list.push(value)
}
