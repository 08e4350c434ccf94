import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seeded } from '@weir/bench/random'
import { RedisServer } from '@weir/tooling/redis-servers'
import { sleep } from '../faults/protocol.ts'
import type { Leased } from './leased-node.ts'

const SCRIPT = new URL('./leased-node.ts', import.meta.url)
/** Sources are run as they are, whatever runs this process: a test runner has other arguments. */
export const EXEC_ARGV: readonly string[] = ['--conditions=@weir/source', '--import', import.meta.resolve('tsx')]

export interface KillsOptions {
  readonly seed: number
  readonly intervals: number
  readonly nodes?: number
  readonly limit?: number
  /** Milliseconds. */
  readonly interval?: number
  /** How many times the limit is offered. */
  readonly times?: number
}

/** The records of the witnesses. */
export interface KillsResult {
  readonly limit: number
  /** Units that were certainly allowed in each interval, in order, those of the begin and the end of the run included. */
  readonly allowed: readonly number[]
  /** All units, also those of which it is not certain to which of two intervals they belong. */
  readonly all: number
  readonly kills: number
}

/** Milliseconds: a unit that was taken so near an interval's end may belong to the next one by Redis' clock, which shows whole microseconds. */
const NEAR = 2

/**
 * Processes that take quota ahead from a real Redis while far more is offered than the limit, of which one is killed (−9) in each
 * interval and another one started. Every allowed request is written to a file before its process does anything else.
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
      // While units are left, as a rule.
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

/** The first unit was allowed. */
export async function written(file: string): Promise<void> {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(50)) {
    try {
      if (readFileSync(file, 'utf8') !== '') return
    } catch {
      // Not there yet.
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

/** The faults of a run; empty if there are none. */
export function killFailuresOf({ limit, allowed, all }: KillsResult): string[] {
  const above = allowed.filter((units) => units > limit).map((units) => `${units} of ${limit} units in an interval`)
  const most = limit * allowed.length
  return all > most ? [...above, `${all} units in ${allowed.length} intervals of ${limit}`] : above
}
