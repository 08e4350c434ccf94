import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { runProgram } from '../harness/programs.ts'
import { type Goal, type Report, type Row, round } from '../harness/report.ts'
import { FROM, READY } from './common-start.ts'
import { TOGETHER, type TogetherName } from './contenders.ts'
import type { Demand, PaceInput, PaceResult } from './pace.ts'
import { mostIn } from './virtual.ts'

/** Milliseconds that started processes need to count each other. */
const HEAD_START = 3_000
/** Milliseconds in which all processes must start. Many of them need some time on a busy machine. */
const START = 120_000
const SECOND = 1_000
const NAMES = Object.keys(TOGETHER) as readonly TogetherName[]

interface Run {
  readonly times: readonly number[]
  /** Requests that did not start. */
  readonly failed: number
  readonly commands: number
  /** Its start, by the wall clock. */
  readonly from: number
}

/** The accuracy with which processes together keep the pace of a service that they call. */
export async function pace(quick: boolean): Promise<Report> {
  const limit = 10
  const seconds = quick ? 5 : 15
  const rows: Row[] = []
  const goals: Goal[] = []
  for (const contender of NAMES) {
    for (const processes of [1, 3, 12]) {
      const what = `${contender}, ${processes} processes`
      const found = await tried(() => run(contender, limit, processes, () => ({ kind: 'always', during: seconds * SECOND + 5 })))
      if (typeof found === 'string') {
        rows.push({ contender, processes, failed: found })
        if (contender.startsWith('weir')) goals.push(missed(what))
        continue
      }
      const { times, failed, from } = found
      const counts = ofTheClock(times, Math.ceil(from / SECOND), seconds)
      const ofClock = Math.max(...counts)
      const any = mostIn(times, SECOND)
      const first = times.filter((time) => time < from + SECOND).length
      const used = counts.reduce((sum, count) => sum + count, 0) / seconds / limit
      rows.push({
        contender,
        processes,
        'most in a second of the clock': ofClock,
        'in any second': any,
        'in the first': first,
        'went, part of the limit': round(used),
        ...(failed > 0 && { 'did not go': failed }),
      })
      if (!contender.startsWith('weir')) continue
      const paced = contender.includes('Bucket')
      if (paced) {
        goals.push({
          what: `${what}, any second after the first`,
          value: mostIn(
            times.filter((time) => time >= from + SECOND),
            SECOND,
          ),
          most: limit + 1,
        })
        goals.push({ what: `${what}, the first second`, value: first, most: Math.max(limit, processes) + 1 })
      } else if (contender !== "weir, 'background'") goals.push({ what: `${what}, a second of the clock`, value: ofClock, most: limit })
      goals.push({ what: `${what}, part of the limit that was not used`, value: 1 - used, most: 0.02 })
    }
  }
  return { title: `Processes that wait for ${limit} requests a second together, with a real Redis`, rows, goals }
}

const LIMIT = 100
const PROCESSES = 3
const FLOOD = 600

/** The number of commands that Redis gets for each request. */
export async function commands(quick: boolean): Promise<Report> {
  const seconds = quick ? 5 : 15
  const random = (load: number) => ({
    load: `x${load}`,
    most: 0.5,
    demand: (seed: number): Demand => ({ kind: 'random', rate: (load * LIMIT) / PROCESSES, seconds, seed }),
  })
  const flood: Demand = { kind: 'flood', requests: FLOOD / PROCESSES }
  const loads = [{ load: `a flood of ${FLOOD}`, most: 0.1, demand: () => flood }, random(0.5), random(0.9)]
  const rows: Row[] = []
  const goals: Goal[] = []
  for (const { load, most, demand } of loads) {
    const each = new Map<TogetherName, number>()
    for (const contender of NAMES) {
      const found = await tried(() => run(contender, LIMIT, PROCESSES, demand))
      if (typeof found === 'string') {
        rows.push({ load, contender, failed: found })
        if (contender.startsWith('weir')) goals.push(missed(`${contender}, ${load}`))
      } else each.set(contender, found.commands / found.times.length)
    }
    // Commands per request of a peer that couldn't be measured. It registers, submits and frees each job.
    const peer = each.get('bottleneck') ?? 3
    for (const [contender, commands] of each) {
      rows.push({ load, contender, 'commands for a request': round(commands), "times bottleneck's": round(commands / peer) })
      if (contender.startsWith('weir'))
        goals.push({ what: `${contender}, ${load}: commands, times bottleneck's`, value: commands / peer, most })
    }
  }
  return { title: `Commands that Redis gets, ${PROCESSES} processes and ${LIMIT} requests a second`, rows, goals }
}

/** The result of a run, or the reason why it didn't end, so that the other rows are printed nevertheless. */
async function tried(run: () => Promise<Run>): Promise<Run | string> {
  try {
    return await run()
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n', 1)[0] as string) : String(error)
  }
}

function missed(what: string): Goal {
  return { what: `${what}: runs to its end`, value: Number.POSITIVE_INFINITY, most: 0 }
}

async function run(contender: TogetherName, limit: number, processes: number, demand: (process: number) => Demand): Promise<Run> {
  const server = await RedisServer.start()
  try {
    const running = Promise.all(
      Array.from({ length: processes }, (_, process) => {
        const input: PaceInput = { contender, port: server.port, limit, demand: demand(process) }
        return runProgram<PaceResult>('waiting/pace', input, { patience: START + 120_000 })
      }),
    )
    const [from, results] = await Promise.all([Promise.race([begin(server.port, processes), running.then(() => 0)]), running])
    return {
      from,
      times: results.flatMap(({ times }) => times),
      failed: results.reduce((sum, { failed }) => sum + failed, 0),
      commands: results.reduce((sum, { commands }) => sum + commands, 0),
    }
  } finally {
    await server.stop()
  }
}

/** Waits until all processes have started, and sets their common start. */
async function begin(port: number, processes: number): Promise<number> {
  const redis = new Redis({ host: '127.0.0.1', port })
  try {
    const until = Date.now() + START
    while (Number(await redis.get(READY)) < processes && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50))
    // The start is just before a second, so that processes with late timers count in the right one.
    const from = SECOND * Math.ceil((Date.now() + HEAD_START) / SECOND) - 5
    await redis.set(FROM, from)
    return from
  } finally {
    redis.disconnect()
  }
}

/** Requests that started in each whole second of the clock. */
function ofTheClock(times: readonly number[], first: number, seconds: number): readonly number[] {
  const counts = Array.from({ length: seconds }, () => 0)
  for (const time of times) {
    const second = Math.floor(time / SECOND) - first
    if (second >= 0 && second < seconds) counts[second] = (counts[second] as number) + 1
  }
  return counts
}
