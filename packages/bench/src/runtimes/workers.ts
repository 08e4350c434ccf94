import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bundleWorker, Workerd } from '@weir/tooling/workerd'
import type { BenchOptions } from '../harness/bench.ts'
import { type Report, round } from '../harness/report.ts'
import { median, percentile } from '../harness/statistics.ts'

const ISOLATES = 3
/** As in the Worker. */
const INTERVAL = 10_000
const LIMIT = 1_000
const PER_SECOND = 1_000
/** Milliseconds between two bursts of requests. */
const TICK = 5

/** The requests of one load, by interval. */
interface Load {
  /** Allowed requests in each whole interval. */
  readonly allowed: readonly number[]
  readonly latencies: readonly number[]
  readonly failed: number
}

/** Three isolates of a Worker in workerd, with one Durable Object: in the background, and with a call for each request. */
export async function workers({ rounds, quick }: BenchOptions): Promise<readonly Report[]> {
  const code = await bundleWorker(fileURLToPath(new URL('worker.ts', import.meta.url)), false)
  const workerd = await Workerd.start(code, ISOLATES, { WEIR: 'CountedHub', COUNTER: 'Counter' })
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  try {
    // First, because isolates that had a pause read counts before they decide, for some seconds.
    const added = await pairs(workerd, agent, quick ? 3_000 : 20_000)
    const intervals = quick ? 2 : 4
    const loads = { none: [] as Load[], limited: [] as Load[], each: [] as Load[] }
    let calls = 0
    for (let i = 0; i < Math.min(rounds, 3); i++) {
      loads.none.push(await load(workerd, agent, '/none', 1))
      const before = await callsOf(workerd)
      loads.limited.push(await load(workerd, agent, '/limited', intervals))
      calls += (await callsOf(workerd)) - before
      loads.each.push(await load(workerd, agent, '/each', intervals))
    }
    const sent = loads.limited.length * (intervals + 1) * (INTERVAL / 1_000) * PER_SECOND
    const row = (name: string, all: readonly Load[], callsPer: number, more: string) => {
      const allowed = all.flatMap((one) => one.allowed)
      const latencies = all.flatMap((one) => one.latencies)
      return {
        limiter: name,
        'allowed per interval, median': median(allowed),
        'at most': Math.max(...allowed),
        'calls to the object per 100 requests': round(callsPer),
        'p50, ms': round(median(latencies)),
        'p99, ms': round(percentile(latencies, 0.99)),
        'p50 added, alone, ms': more,
        failed: all.reduce((sum, { failed }) => sum + failed, 0),
      }
    }
    const share = (100 * calls) / sent
    return [
      {
        title: `workerd: ${ISOLATES} isolates, one Durable Object, ${PER_SECOND} requests per second, limit ${LIMIT} per ${INTERVAL / 1_000} s`,
        rows: [
          row('none', loads.none, 0, ''),
          row('durableObjectStore, background', loads.limited, share, String(round(added.open))),
          row('one call per request', loads.each, 100, String(round(added.each))),
        ],
        goals: [
          {
            what: 'allowed per interval, % of the limit',
            value: (100 * Math.max(...loads.limited.flatMap(({ allowed }) => allowed))) / LIMIT,
            most: 105,
          },
          { what: 'calls to the object, % of requests', value: share, most: 2 },
          { what: 'added latency, p50, ms', value: added.open, most: 0.2 },
        ],
      },
    ]
  } finally {
    agent.destroy()
    await workerd.close()
  }
}

async function callsOf(workerd: Workerd): Promise<number> {
  return (await (await workerd.fetch(0, '/calls')).json()) as number
}

/** Sends requests at an even rate, in one interval that isn't measured and in the following ones. */
async function load(workerd: Workerd, agent: Agent, path: string, intervals: number): Promise<Load> {
  await sleep(INTERVAL - (Date.now() % INTERVAL))
  const first = Math.round(Date.now() / INTERVAL)
  const allowed = Array.from({ length: intervals + 1 }, () => 0)
  const latencies: number[] = []
  const open = new Set<Promise<void>>()
  let failed = 0
  const end = (first + intervals + 1) * INTERVAL
  const begun = performance.now()
  for (let sent = 0; Date.now() < end - TICK; ) {
    const due = Math.floor(((performance.now() - begun) * PER_SECOND) / 1_000)
    for (; sent < due; sent++) {
      const request = timed(workerd.url(sent % ISOLATES, path), agent).then(
        ({ status, took, body }) => {
          if (Date.now() >= (first + 1) * INTERVAL) latencies.push(took)
          const interval = Math.floor(Number(body) / INTERVAL) - first
          if (status === 200) allowed[interval] = (allowed[interval] ?? 0) + 1
          else if (status !== 429) failed++
        },
        () => void failed++,
      )
      open.add(request)
      void request.then(() => open.delete(request))
    }
    await sleep(TICK)
  }
  await Promise.all(open)
  return { allowed: allowed.slice(1, intervals + 1), latencies, failed }
}

/** The latency that each limiter adds, from requests that are sent one after another in turn, so that all see the same machine. */
async function pairs(workerd: Workerd, agent: Agent, count: number): Promise<{ readonly open: number; readonly each: number }> {
  const paths = ['/none', '/open', '/each'] as const
  const latencies = { '/none': [] as number[], '/open': [] as number[], '/each': [] as number[] }
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < paths.length; j++) {
      const path = paths[(i + j) % paths.length] as (typeof paths)[number]
      const { took } = await timed(workerd.url(i % ISOLATES, path), agent)
      if (i > count / 10) latencies[path].push(took)
    }
  }
  const none = median(latencies['/none'])
  return { open: median(latencies['/open']) - none, each: median(latencies['/each']) - none }
}

interface Timed {
  readonly status: number
  readonly took: number
  readonly body: string
}

function timed(url: string, agent: Agent): Promise<Timed> {
  return new Promise((resolve, reject) => {
    const begun = performance.now()
    const request = get(url, { agent }, (response) => {
      let body = ''
      response.setEncoding('latin1').on('data', (text: string) => (body += text))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, took: performance.now() - begun, body }))
    })
    request.on('error', reject)
  })
}
