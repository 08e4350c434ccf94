import { once } from 'node:events'
import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { startProgram } from '../harness/programs.ts'
import { median } from '../harness/statistics.ts'
import type { MiddlewareName } from './contenders.ts'
import type { Kind } from './limit.ts'
import type { NodeInput, Phase, PhaseResult } from './program.ts'

export const NODES = 10

/** One phase of all processes. */
export interface Measured {
  readonly allowed: number
  /** Commands that the processes send for 1,000 requests, and commands that Redis counts, with those that scripts call. */
  readonly sent: number
  readonly all: number
  /** Milliseconds, medians of the processes. */
  readonly p50: number
  readonly p99: number
}

/** Runs ten processes with a store under a middleware, on a Redis that only they use. */
export async function cluster(middleware: MiddlewareName, kind: Kind, phases: readonly Phase[]): Promise<readonly Measured[]> {
  const server = await RedisServer.start()
  const admin = new Redis(server.url)
  try {
    const given: NodeInput = { url: server.url, middleware, kind, phases }
    const children = await Promise.all(Array.from({ length: NODES }, () => startProgram('compat', given, { channel: true })))
    const results = Promise.all(
      children.map(async (child) => {
        let text = ''
        child.stdout?.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        const [status] = (await once(child, 'close')) as [number | null]
        if (status !== 0) throw new Error(`A process with ${middleware} over ${kind} ended with ${status}`)
        return JSON.parse(text.trimEnd().split('\n').at(-1) as string) as readonly PhaseResult[]
      }),
    )
    await Promise.race([Promise.all(children.map((child) => once(child, 'message'))), results])
    const starts = startsOf(phases)
    for (const child of children) child.send(starts)
    const counts: Commands[] = []
    for (const start of starts) {
      // Before the processes begin the next phase, and after the last one's counts were sent.
      await new Promise((resolve) => setTimeout(resolve, start - 20 - Date.now()))
      counts.push(await commandsOf(admin))
    }
    const lists = await results
    return phases.map(({ requests }, at) => {
      const phase = lists.map((list) => list[at] as PhaseResult)
      const allowed = phase.reduce((total, one) => total + one.allowed, 0)
      const per = (figure: keyof Commands) => (((counts[at + 1]?.[figure] ?? 0) - (counts[at]?.[figure] ?? 0)) * 1000) / (requests * NODES)
      const [p50, p99] = [median(phase.map((one) => one.p50)), median(phase.map((one) => one.p99))]
      return { allowed, sent: per('sent'), all: per('all'), p50, p99 }
    })
  } finally {
    admin.disconnect()
    await server.stop()
  }
}

/** The times at which phases begin, and the end of the last. A phase that fills its window begins with it. */
function startsOf(phases: readonly Phase[]): readonly number[] {
  const starts: number[] = []
  let now = Date.now() + 200
  for (const { window, busy } of phases) {
    const fills = busy > window / 2
    const start = fills ? Math.ceil(now / window) * window : now
    starts.push(start)
    now = start + (fills ? window : busy + 200)
  }
  return [...starts, now]
}

interface Commands {
  readonly sent: number
  readonly all: number
}

/** Commands that no script of the measured stores calls. Everything else, except `INFO`, is called by scripts. */
const SENT = /^(eval|evalsha|script|subscribe|hello|ping)\b/

/** Commands since the server started, except the ones that read these numbers. */
async function commandsOf(admin: Redis): Promise<Commands> {
  let sent = 0
  let all = 0
  for (const [, name, count] of (await admin.info('commandstats')).matchAll(/^cmdstat_(?!info:)([^:]+):calls=(\d+)/gm)) {
    all += Number(count)
    if (SENT.test(name as string)) sent += Number(count)
  }
  return { sent, all }
}
