import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seeded } from '@weir/bench/random'
import { RedisServer } from '@weir/tooling/redis-servers'
import { sleep } from '../faults/protocol.ts'
import { EXEC_ARGV, written } from './kills.ts'
import type { Holding } from './slots-node.ts'

const SCRIPT = new URL('./slots-node.ts', import.meta.url)
/** Milliseconds. A process counts as live for four heartbeats. On a busy machine no process pauses for that long. */
const HEARTBEAT = 1_500
const LIFETIME = 4 * HEARTBEAT

export interface SlotKillsOptions {
  readonly seed: number
  readonly kills: number
  readonly nodes?: number
  readonly limit?: number
}

/** The records of the witnesses. */
export interface SlotKillsResult {
  readonly limit: number
  readonly kills: number
  readonly requests: number
  /**
   * The most requests that were certainly in flight at the same time: in the whole run, and at its end, when the slots of killed
   * processes are free again.
   */
  readonly most: number
  readonly mostAtTheEnd: number
}

/**
 * Runs processes whose requests use slots of a real Redis, with far more requests than slots. One process after another is killed
 * (−9) with requests in flight. A process writes every start and end to a file before it does anything else.
 */
export async function killsWithSlots(options: SlotKillsOptions): Promise<SlotKillsResult> {
  const { seed, kills, nodes = 4, limit = 12 } = options
  const random = seeded(seed)
  const server = await RedisServer.start()
  const folder = mkdtempSync(join(tmpdir(), 'weir-slots-'))
  const witness = join(folder, 'requests')
  let started = 0
  const start = (): ChildProcess => {
    const load = { limit, heartbeat: HEARTBEAT, workers: limit, longest: 40 }
    const holding: Holding = { ...load, port: server.port, namespace: `slots-${seed}`, seed: seed * 1_000 + ++started, witness }
    return fork(SCRIPT, [JSON.stringify(holding)], { execArgv: [...EXEC_ARGV], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  }
  const children = Array.from({ length: nodes }, start)
  const killedAt = new Map<number, bigint>()
  let freeAgain = 0n
  try {
    await written(witness)
    for (let i = 0; i < kills; i++) {
      await sleep(1_000 + random() * 1_000)
      const place = Math.floor(random() * nodes)
      const child = children[place] as ChildProcess
      killedAt.set(child.pid as number, process.hrtime.bigint())
      child.kill('SIGKILL')
      children[place] = start()
    }
    await sleep(LIFETIME + 1_000)
    freeAgain = process.hrtime.bigint()
    await sleep(2_000)
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await server.stop()
  }
  const text = readFileSync(witness, 'utf8')
  rmSync(folder, { recursive: true })
  return { limit, kills, ...countsOf(text, killedAt, freeAgain) }
}

function countsOf(
  text: string,
  killedAt: ReadonlyMap<number, bigint>,
  freeAgain: bigint,
): Pick<SlotKillsResult, 'requests' | 'most' | 'mostAtTheEnd'> {
  const changes: { readonly at: bigint; readonly by: 1 | -1 }[] = []
  const running = new Set<string>()
  let requests = 0
  for (const line of text.split('\n')) {
    const [what, pid, id, time] = line.split(' ')
    // The last line of a killed process may be cut off.
    if (time === undefined || !/^\d+$/.test(time)) continue
    const killed = killedAt.get(Number(pid))
    const at = BigInt(time)
    if (killed !== undefined && at >= killed) continue
    if (what === 'begin') {
      requests++
      running.add(`${pid} ${id}`)
      changes.push({ at, by: 1 })
    } else if (running.delete(`${pid} ${id}`)) changes.push({ at, by: -1 })
  }
  for (const name of running) {
    const killed = killedAt.get(Number(name.split(' ')[0]))
    if (killed !== undefined) changes.push({ at: killed, by: -1 })
  }
  changes.sort((a, b) => (a.at === b.at ? a.by - b.by : a.at < b.at ? -1 : 1))
  let now = 0
  let most = 0
  let mostAtTheEnd = 0
  for (const { at, by } of changes) {
    now += by
    most = Math.max(most, now)
    if (at > freeAgain) mostAtTheEnd = Math.max(mostAtTheEnd, now)
  }
  return { requests, most, mostAtTheEnd }
}

/** The faults of a run. Empty if there are none. */
export function slotFailuresOf({ limit, most, mostAtTheEnd, requests }: SlotKillsResult): string[] {
  const failures: string[] = []
  if (most > limit) failures.push(`${most} requests were in flight at the same time, of ${limit}`)
  if (mostAtTheEnd < limit) failures.push(`${mostAtTheEnd} requests at most were in flight at the end, of ${limit}: slots are lost`)
  if (requests < 20 * limit) failures.push(`${requests} requests went in all`)
  return failures
}
