import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { MEETINGS, type Meeting } from '@weir/bench/stores/servers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Count, Task } from './node.ts'

const NODES = 4
const LIMIT = 1000
const INTERVAL = 10_000
const INTERVALS = 3
/** Loads with separate keys, sent at the same time. */
const LOADS = { over: 5, under: 0.9 }
/**
 * The allowed overshoot: some units of each process, and the requests that come while announcements are in flight, by their
 * measured time.
 */
const most = ({ slowest }: Count): number => 0.02 + (LOADS.over * slowest) / INTERVAL
const STORES = ['redis', 'postgres', 'etcd'] as const
type StoreName = (typeof STORES)[number]
/** The stores of a row are used at the same time, which saves minutes. */
const ROUNDS: readonly (readonly StoreName[])[] = [['redis'], ['postgres', 'etcd']]
/** Twice the time for four process starts, up to one interval until the next one begins, three intervals, and closing. */
const PATIENCE = 240_000

const meetings = new Map<string, Meeting>()
const children: ChildProcess[] = []
const counts: Count[] = []

beforeAll(async () => {
  for (const name of STORES) {
    const meeting = await MEETINGS[name]?.()
    if (meeting === undefined) console.warn(`There is no ${name} on this machine: limits are not kept over it here.`)
    else meetings.set(name, meeting)
  }
  for (const stores of ROUNDS) counts.push(...(await run(stores)))
}, PATIENCE)

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  for (const meeting of meetings.values()) await meeting.stop()
})

async function start(): Promise<ChildProcess> {
  const child = fork(new URL('./node.ts', import.meta.url), {
    execArgv: ['--import', 'tsx', '--conditions=@weir/source'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  children.push(child)
  await once(child, 'message')
  return child
}

/** The requests that all processes allowed and rejected in the whole intervals. */
async function run(stores: readonly string[]): Promise<readonly Count[]> {
  const places = Object.fromEntries([...meetings].flatMap(([name, { place }]) => (stores.includes(name) ? [[name, place]] : [])))
  if (Object.keys(places).length === 0) return []
  const nodes = await Promise.all(Array.from({ length: NODES }, start))
  const first = Math.ceil((Date.now() + 1000) / INTERVAL)
  const task: Omit<Task, 'part'> = {
    places,
    limit: LIMIT,
    interval: INTERVAL,
    loads: Object.fromEntries(Object.entries(LOADS).map(([name, times]) => [name, (LIMIT * times) / NODES])),
    // The load starts a second early, so that the processes count each other when the first measured interval begins.
    from: first * INTERVAL - 1000,
    until: (first + INTERVALS) * INTERVAL,
  }
  const answers = await Promise.all(
    nodes.map(async (node, i) => {
      const answer = once(node, 'message')
      node.send({ ...task, part: i / NODES } satisfies Task)
      const [counts] = (await answer) as [readonly Count[]]
      return counts
    }),
  )
  const totals = new Map<string, Count>()
  for (const { store, load, interval, allowed, rejected, slowest } of answers.flat()) {
    if (interval < first || interval >= first + INTERVALS) continue
    const id = `${store} ${load} ${interval}`
    const total = totals.get(id) ?? { store, load, interval, allowed: 0, rejected: 0, slowest: 0 }
    totals.set(id, {
      ...total,
      allowed: total.allowed + allowed,
      rejected: total.rejected + rejected,
      slowest: Math.max(total.slowest, slowest),
    })
  }
  return [...totals.values()]
}

describe.each(STORES)('four processes over %s', (store) => {
  const of = (load: keyof typeof LOADS): readonly Count[] => counts.filter((count) => count.store === store && count.load === load)

  test('keep a limit at five times the limit', (context) => {
    if (!meetings.has(store)) return context.skip('it is not installed')
    expect(of('over')).toHaveLength(INTERVALS)
    for (const count of of('over')) {
      const { allowed, rejected } = count
      expect(allowed).toBeGreaterThanOrEqual(LIMIT * 0.98)
      expect(allowed, JSON.stringify(count)).toBeLessThanOrEqual(LIMIT * (1 + most(count)))
      expect(rejected).toBeGreaterThan(2 * LIMIT)
    }
  })

  test('reject nobody at nine tenths of it', (context) => {
    if (!meetings.has(store)) return context.skip('it is not installed')
    expect(of('under')).toHaveLength(INTERVALS)
    for (const { allowed, rejected } of of('under')) {
      expect(rejected).toBe(0)
      expect(allowed).toBeGreaterThan(LIMIT / 2)
    }
  })
})
