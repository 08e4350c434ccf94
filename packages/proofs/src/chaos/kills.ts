import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seeded } from '@weir/bench/random'
import { RedisServer } from '@weir/tooling/redis-servers'
import { sleep } from '../faults/protocol.ts'
import type { Leased } from './leased-node.ts'

const SCRIPT = new URL('./leased-node.ts', import.meta.url)
/** The sources run as they are, because a test runner that runs this process has other arguments. */
export const EXEC_ARGV: readonly string[] = ['--conditions=@weir/source', '--import', import.meta.resolve('tsx')]

export interface KillsOptions {
  readonly seed: number
  readonly intervals: number
  readonly nodes?: number
  readonly limit?: number
  /** The interval, in milliseconds. */
  readonly interval?: number
  /** The multiple of the limit that is offered. */
  readonly times?: number
}

/** The records of the witnesses. */
export interface KillsResult {
  readonly limit: number
  /** Units that were certainly allowed in each interval, in order, including the first and the last one of the run. */
  readonly allowed: readonly number[]
  /** All units, including units for which the interval is uncertain. */
  readonly all: number
  readonly kills: number
}

/** Milliseconds. A unit this near an interval's end may belong to the next one by Redis' clock, which shows whole microseconds. */
const NEAR = 2

/**
 * Runs processes that use leases from a real Redis while far more than the limit is offered. In each interval one of them is killed
 * (−9) and another one is started. A process writes every allowed request to a file before it does anything else.
 */
export async function killsWithLeases(options: KillsOptions): Promise<KillsResult> {
  const { seed, intervals, nodes = 4, limit = 1_000, interval = 2_000, times = 5 } = options
  const random = seeded(seed)
  const server = await RedisServer.start()
  const folder = mkdtempSync(join(tmpdir(), 'weir-leases-'))
  const witness = join(folder, 'allowed')
  let started = 0
  const start = (): ChildProcess => {
    const rate = (times * limit * 1000) / (interval * nodes)
    const leased: Leased = { port: server.port, namespace: `kills-${seed}`, limit, interval, rate, seed: seed * 1_000 + ++started, witness }
    return fork(SCRIPT, [JSON.stringify(leased)], { execArgv: [...EXEC_ARGV], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  }
  const children = Array.from({ length: nodes }, start)
  let kills = 0
  try {
    // Processes start one after the other on a small machine.
    await written(witness)
    for (let i = 0; i < intervals; i++) {
      const place = Math.floor(random() * nodes)
      const begin = Math.ceil(Date.now() / interval) * interval
      // Units are usually left at that moment.
      await sleep(begin - Date.now() + (random() * interval) / 2)
      children[place]?.kill('SIGKILL')
      kills++
      children[place] = start()
    }
    await sleep(interval)
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await server.stop()
  }
  const { allowed, all } = countsOf(readFileSync(witness, 'utf8'), interval)
  rmSync(folder, { recursive: true })
  return { limit, allowed, all, kills }
}

/** Waits until the first unit was allowed. */
export async function written(file: string): Promise<void> {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(50)) {
    try {
      if (readFileSync(file, 'utf8') !== '') return
    } catch {
      // The file does not exist yet.
    }
  }
  throw new Error('No process has allowed anything within a minute.')
}

function countsOf(text: string, interval: number): { allowed: number[]; all: number } {
  const counts = new Map<number, number>()
  let all = 0
  for (const line of text.split('\n')) {
    const [asked, done] = line.split(' ').map(Number)
    if (asked === undefined || done === undefined) continue
    all++
    const [from, to] = [asked - NEAR, done + NEAR].map((time) => Math.floor(time / interval)) as [number, number]
    counts.set(from, (counts.get(from) ?? 0) + (from === to ? 1 : 0))
    if (from !== to) counts.set(to, counts.get(to) ?? 0)
  }
  return { allowed: [...counts].sort(([a], [b]) => a - b).map(([, units]) => units), all }
}

/** The faults of a run. Empty if there are none. */
export function killFailuresOf({ limit, allowed, all }: KillsResult): string[] {
  const above = allowed.filter((units) => units > limit).map((units) => `${units} of ${limit} units in an interval`)
  const most = limit * allowed.length
  return all > most ? [...above, `${all} units in ${allowed.length} intervals of ${limit}`] : above
}
