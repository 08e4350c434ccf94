import { seeded } from '@weir/bench/random'
import { until } from '@weir/tooling/redis-servers'
import { bookedOf, differenceOf, immortalsOf } from '../faults/books.ts'
import { FAULTS, type Fault } from '../faults/catalog.ts'
import { Clients } from '../faults/clients.ts'
import { renewAll, startFleet } from '../faults/fleet.ts'
import { allowedOf, type Verdict, verdictOf } from '../faults/judge.ts'
import { type Heap, monotonic, type Rule, sleep } from '../faults/protocol.ts'
import { LEASES } from '../faults/run-fault.ts'
import { openStage } from '../faults/stage.ts'

/** The state at the end. */
export interface SoakResult {
  readonly seed: number
  readonly minutes: number
  readonly faults: readonly string[]
  readonly verdict: Verdict
  readonly lost: number
  readonly doubled: number
  readonly immortals: readonly string[]
  /** The growth of the heap after garbage collections, in bytes per minute, of the process that grew most. */
  readonly heapSlope: number
  /** Resources (timers, sockets) of which a process has more at the end than at the start, after everything was closed. */
  readonly leaks: readonly string[]
  /** Processes that ended. */
  readonly dead: readonly string[]
  /** Whether all processes were synced at the end. */
  readonly synced: boolean
}

/** Faults of one server behind a proxy: of the server, of the network, and both. */
const CANDIDATES: readonly Fault[] = FAULTS.filter(({ stage, boot }) => boot === undefined && (stage === 'server' || stage === 'proxy'))
/** Milliseconds between two checks of everything. The counters of the books must not expire meanwhile. */
const LONGEST_CHAPTER = 120_000
/** Milliseconds in which a closed process releases everything. Clients of Redis wait up to 2 s for a socket's end. */
const ENDING = 5_000
const CHAPTERS = 5

/** Runs a mixed load with random faults. The same seed makes the same faults. */
export async function soak(minutes: number, seed: number, tell: (line: string) => void = () => {}): Promise<SoakResult> {
  const random = seeded(seed)
  const stage = await openStage('proxy')
  const nodes = await startFleet()
  const end = monotonic() + minutes * 60_000
  const faults: string[] = []
  const heaps = nodes.map(() => [] as { at: number; heap: Heap }[])
  const seen: Clients['seen'] = []
  let lost = 0
  let doubled = 0
  let synced = true
  const immortals: string[] = []
  const measure = async (): Promise<void> => {
    for (const [i, node] of nodes.entries()) {
      const measured = heaps[i] as { at: number; heap: Heap }[]
      // An ended socket has a timer until the other side has ended it too.
      for (const end = monotonic() + ENDING; ; await sleep(50)) {
        const { heap } = await node.ask({ type: 'heap' })
        if (heap === undefined) break
        const one = { at: monotonic(), heap }
        if (leaksOf([measured[0] ?? one, one]).length > 0 && monotonic() < end) continue
        measured.push(one)
        break
      }
    }
  }
  try {
    for (let chapter = 0; monotonic() < end; chapter++) {
      const rule: Rule = {
        namespace: `chaos-${process.pid}-${chapter}`,
        target: stage.target,
        limit: 100,
        interval: 2_000,
        spans: 4,
        cooldown: random() < 0.5 ? 0 : 1_000,
        ...(random() < 0.5 ? LEASES : { bucket: random() < 0.5 }),
      }
      await renewAll(nodes, rule)
      await Promise.all(nodes.map((node) => node.synced()))
      const clients = new Clients(nodes, { steady: 25, greedy: 150, rare: 1 }, seed + chapter)
      const before = faults.length
      const chapterEnd = Math.min(end, monotonic() + Math.min(LONGEST_CHAPTER, (minutes * 60_000) / CHAPTERS))
      while (monotonic() < chapterEnd - 3_000) {
        await sleep(500 + 2_000 * random())
        const fault = CANDIDATES[Math.floor(random() * CANDIDATES.length)] as Fault
        faults.push(fault.name)
        tell(fault.name)
        await fault.begin(stage)
        await sleep(Math.min(fault.lasts * (0.2 + random()), Math.max(0, chapterEnd - monotonic())))
        await fault.end(stage, nodes)
      }
      await Promise.all(nodes.map((node) => node.synced(5_000))).catch(() => {
        synced = false
      })
      await clients.stop()
      await Promise.all(nodes.map((node) => node.ask({ type: 'close' })))
      const allowed = allowedOf(clients.seen)
      const difference = differenceOf(allowed, await bookedOf(stage.servers, rule.namespace))
      if (difference.lost + difference.doubled > 0)
        tell(`${difference.lost} units lost, ${difference.doubled} doubled: ${JSON.stringify({ rule, faults: faults.slice(before) })}`)
      lost += difference.lost
      doubled += difference.doubled
      immortals.push(...(await immortalsOf(stage.servers, rule.namespace)))
      for (const one of clients.seen) seen.push(one)
      // Idle connections of the clients close within a moment. Then all remaining resources belong to the process.
      await until(() => stage.proxy?.connections === 0, 'the connections to Redis are closed', 5_000).catch(() => {})
      await measure()
    }
    return {
      seed,
      minutes,
      faults,
      verdict: verdictOf(seen),
      lost,
      doubled,
      immortals,
      heapSlope: Math.max(...heaps.map(slopeOf)),
      leaks: [...heaps.flatMap(leaksOf), ...(stage.proxy?.connections ? [`${stage.proxy.connections} connections to Redis`] : [])],
      dead: nodes.flatMap(({ adapter, ended }) => (ended === undefined ? [] : [`${adapter} ${ended}`])),
      synced,
    }
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    await stage.stop()
  }
}

/** Least squares, in bytes per minute. The first measurement is left out, because code is still being compiled then. */
function slopeOf(measured: readonly { at: number; heap: Heap }[]): number {
  const points = measured.slice(1)
  if (points.length < 3) return 0
  const meanAt = points.reduce((sum, { at }) => sum + at, 0) / points.length
  const meanUsed = points.reduce((sum, { heap }) => sum + heap.used, 0) / points.length
  let above = 0
  let below = 0
  for (const { at, heap } of points) {
    above += (at - meanAt) * (heap.used - meanUsed)
    below += (at - meanAt) ** 2
  }
  return below === 0 ? 0 : (above / below) * 60_000
}

function leaksOf(measured: readonly { at: number; heap: Heap }[]): string[] {
  const first = measured[0]?.heap.resources ?? {}
  const last = measured.at(-1)?.heap.resources ?? {}
  return Object.entries(last)
    .filter(([kind, count]) => WATCHED.test(kind) && count > (first[kind] ?? 0))
    .map(([kind, count]) => `${kind}: ${first[kind] ?? 0} to ${count}`)
}

/** Resources that must not grow. Sockets are left out, because clients open and close them. */
const WATCHED = /Timeout|Immediate|ConnectWrap|FSReq|Pipe/

/** The reasons for which a run has failed. Empty if it has not. */
export function failuresOf(result: SoakResult): string[] {
  const { minutes, verdict, lost, doubled, immortals, heapSlope, leaks, dead, synced } = result
  return [
    ...(verdict.answered < verdict.sent ? [`${verdict.sent - verdict.answered} requests without an answer`] : []),
    ...(verdict.serverErrors + verdict.strange > 0
      ? [`${verdict.serverErrors + verdict.strange} answers that are neither 200 nor 429`]
      : []),
    ...(lost + doubled > 0 ? [`${lost} units lost, ${doubled} doubled`] : []),
    ...immortals.map((key) => `a key that does not expire: ${key}`),
    ...(heapSlope > MOST_GROWTH + WARM_UP / minutes ? [`the heap grows by ${Math.round(heapSlope / 1024)} KiB a minute`] : []),
    ...leaks.map((leak) => `leaked ${leak}`),
    ...dead,
    ...(synced ? [] : ['not all nodes were synced at the end']),
  ]
}

/** Bytes per minute by which a heap may seem to grow, because garbage collections differ. */
const MOST_GROWTH = 1024 * 1024
/**
 * Bytes by which a heap grows once, while code is compiled and buffers reach their size. 170 runs of a minute grew by 0.4 to 3.4
 * MiB, and one of seven minutes by 0.1 MiB a minute.
 */
const WARM_UP = 3 * 1024 * 1024
