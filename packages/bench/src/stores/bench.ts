import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { type Report, type Row, round } from '../harness/report.ts'
import { median, percentile } from '../harness/statistics.ts'
import type { CostInput, CostResult } from './cost.ts'
import type { NodeInput, NodeResult } from './node.ts'
import { MEETINGS, type Meeting } from './servers.ts'

const PROCESSES = 4
const LIMIT = 1_000
/** The interval, in milliseconds. */
const INTERVAL = 5_000

/** All stores, compared: the cost of a sync and of a decision, the accuracy, and the effect of faults. */
export const stores: Bench = async ({ rounds, quick, only }) => {
  const costs: Row[] = []
  const accuracy: Row[] = []
  const faults: Row[] = []
  const unknown = only?.find((name) => MEETINGS[name] === undefined)
  if (unknown !== undefined) throw new Error(`There is no store ${unknown}; there are ${Object.keys(MEETINGS).join(', ')}.`)
  for (const [name, start] of Object.entries(MEETINGS)) {
    if (only !== undefined && !only.includes(name)) continue
    const meeting = await start()
    if (meeting === undefined) {
      console.log(`${name}: no server on this machine`)
      continue
    }
    try {
      costs.push(...(await costsOf(name, meeting, rounds, quick)))
      if (meeting.server !== undefined) accuracy.push(await accuracyOf(name, meeting, quick ? 3 : 6))
      if (meeting.faults !== undefined) faults.push(...(await faultsOf(name, meeting)))
    } finally {
      await meeting.stop()
    }
  }
  return [
    { title: 'What an exchange and a decision cost', rows: costs },
    { title: `${PROCESSES} processes, ${LIMIT} requests per ${INTERVAL / 1_000} s, allowed beyond the limit`, rows: accuracy },
    { title: 'What happens to a process when its store goes away for two seconds', rows: faults },
  ] satisfies Report[]
}

/** The number of keys of a sync, and the number of syncs. With 0 keys it is a decision about a request. */
const EXCHANGES = [
  [1, 1_000],
  [40, 500],
  [1_000, 60],
  [0, 1_000],
] as const

async function costsOf(name: string, { place, server }: Meeting, rounds: number, quick: boolean): Promise<Row[]> {
  const rows: Row[] = []
  for (const [keys, times] of EXCHANGES) {
    const results: CostResult[] = []
    for (let i = 0; i < rounds; i++) {
      const input: CostInput = { place, keys, times: quick ? times / 10 : times, ...(server !== undefined && { server }) }
      results.push(await runProgram<CostResult>('stores/cost', input, { channel: place.kind === 'ipc' }))
    }
    const of = (figure: keyof CostResult): string | number => {
      const value = median(results.map((result) => result[figure] ?? Number.NaN))
      return Number.isNaN(value) ? '–' : round(value)
    }
    rows.push({
      store: name,
      of: keys === 0 ? 'a central decision' : `${keys} ${keys === 1 ? 'key' : 'keys'}`,
      'p50, ms': of('p50'),
      'p99, ms': of('p99'),
      'CPU of the server, ms': of('server'),
      'own CPU, ms': of('own'),
    })
  }
  return rows
}

async function accuracyOf(name: string, meeting: Meeting, intervals: number): Promise<Row> {
  const row: Record<string, string | number> = { store: name }
  for (const times of [0.9, 1.1, 100]) {
    const nodes = await run(meeting, PROCESSES, times, intervals)
    // The first interval is left out, because the processes don't count each other yet.
    const beyond = Array.from({ length: intervals - 1 }, (_, i) => {
      const allowed = nodes.reduce((sum, node) => sum + (node.allowed[i + 1] ?? 0), 0)
      return Math.max(0, allowed / LIMIT - 1) * 100
    })
    row[`×${times}, p50`] = `${percentile(beyond, 0.5).toFixed(1)} %`
    row[`×${times}, most`] = `${Math.max(...beyond).toFixed(1)} %`
  }
  return row
}

/** Milliseconds before the store goes down, while it is down, and in which its return must be noticed. */
const BEFORE = 1_000
const AWAY = 2_000
const AFTER = 2_000

async function faultsOf(name: string, meeting: Meeting): Promise<Row[]> {
  const { faults } = meeting
  if (faults === undefined) return []
  const rows: Row[] = []
  for (const [what, goes, returns] of [
    ['killed, and started again', faults.kill, faults.restart],
    ['hangs', faults.pause, faults.resume],
  ] as const) {
    let gone = 0
    let back = 0
    const [node] = await run(meeting, 1, 0.5, (BEFORE + AWAY + AFTER) / INTERVAL, async (from) => {
      await until(from + BEFORE)
      await goes()
      gone = Date.now() - from
      await until(from + BEFORE + AWAY)
      await returns()
      back = Date.now() - from
    })
    const after = (times: readonly number[] | undefined, moment: number): string | number => {
      const found = times?.find((time) => time >= moment)
      return found === undefined ? 'not noticed' : Math.round(found - moment)
    }
    rows.push({
      store: name,
      'the server': what,
      'noticed after, ms': after(node?.storeDown, gone),
      'back after, ms': after(node?.storeUp, back),
      'longest decision, ms': round(node?.longest ?? Number.NaN),
      'failed decisions': node?.failed ?? Number.NaN,
    })
  }
  return rows
}

/** Milliseconds in which processes start and find each other. */
const STARTING = 2_000

/** Runs some processes for some intervals, and `meanwhile` at the same time. */
async function run(
  { place }: Meeting,
  processes: number,
  times: number,
  intervals: number,
  meanwhile?: (from: number) => Promise<void>,
): Promise<NodeResult[]> {
  const from = Math.ceil((Date.now() + STARTING) / INTERVAL) * INTERVAL
  const rate = (LIMIT * times) / (INTERVAL / 1_000) / processes
  const input: Omit<NodeInput, 'seed'> = { place, limit: LIMIT, interval: INTERVAL, rate, from, until: from + intervals * INTERVAL }
  const running = Array.from({ length: processes }, (_, seed) =>
    runProgram<NodeResult>('stores/node', { ...input, seed }, { channel: place.kind === 'ipc' }),
  )
  await meanwhile?.(from)
  return Promise.all(running)
}

const until = (moment: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, moment - Date.now()))
