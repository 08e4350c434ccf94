import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MEETINGS, type Meeting } from '../../src/stores/servers.ts'
import type { Count, Task } from './node.ts'

const NODES = 4
const LIMIT = 1000
const INTERVAL = 10_000
const INTERVALS = 3
/** Loads of their own keys, sent at the same time. */
const LOADS = { over: 5, under: 0.9 }
/** Milliseconds that Redis takes for an exchange at most, unless the machine is too busy. */
const IN_TIME = 50
/**
 * Where the processes meet, and how much more than the limit is admitted at most: some units of each process, and what comes while news is on
 * its way, which takes a busy server longer; of Redis only what comes later than it should. All are used at the same time.
 */
const STORES = {
  redis: ({ slowest }: Count) => 0.02 + (LOADS.over * Math.max(0, slowest - IN_TIME)) / INTERVAL,
  postgres: ({ slowest }: Count) => 0.02 + (LOADS.over * slowest) / INTERVAL,
  etcd: ({ slowest }: Count) => 0.02 + (LOADS.over * slowest) / INTERVAL,
}
type StoreName = keyof typeof STORES
/** Starting four processes, at most one interval until the next one begins, three of them, and closing. */
const PATIENCE = 120_000

const meetings = new Map<string, Meeting>()
const children: ChildProcess[] = []
let counts: readonly Count[] = []

beforeAll(async () => {
  for (const name of Object.keys(STORES)) {
    const meeting = await MEETINGS[name]?.()
    if (meeting === undefined) console.warn(`There is no ${name} on this machine: limits are not kept over it here.`)
    else meetings.set(name, meeting)
  }
  counts = await run()
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

/** What all processes admitted and refused in the whole intervals. */
async function run(): Promise<readonly Count[]> {
  const nodes = await Promise.all(Array.from({ length: NODES }, start))
  const first = Math.ceil((Date.now() + 1000) / INTERVAL)
  const task: Task = {
    places: Object.fromEntries([...meetings].map(([name, { place }]) => [name, place])),
    limit: LIMIT,
    interval: INTERVAL,
    loads: Object.fromEntries(Object.entries(LOADS).map(([name, times]) => [name, (LIMIT * times) / NODES])),
    // A second earlier, so that the nodes know of each other when the first measured interval begins.
    from: first * INTERVAL - 1000,
    until: (first + INTERVALS) * INTERVAL,
  }
  const answers = await Promise.all(
    nodes.map(async (node) => {
      const answer = once(node, 'message')
      node.send(task)
      const [counts] = (await answer) as [readonly Count[]]
      return counts
    }),
  )
  const totals = new Map<string, Count>()
  for (const { store, load, interval, admitted, refused, slowest } of answers.flat()) {
    if (interval < first || interval >= first + INTERVALS) continue
    const id = `${store} ${load} ${interval}`
    const total = totals.get(id) ?? { store, load, interval, admitted: 0, refused: 0, slowest: 0 }
    totals.set(id, {
      ...total,
      admitted: total.admitted + admitted,
      refused: total.refused + refused,
      slowest: Math.max(total.slowest, slowest),
    })
  }
  return [...totals.values()]
}

describe.each(Object.keys(STORES) as StoreName[])('four processes over %s', (store) => {
  const of = (load: keyof typeof LOADS): readonly Count[] => counts.filter((count) => count.store === store && count.load === load)

  test('keep a limit at five times the limit', (context) => {
    if (!meetings.has(store)) return context.skip('it is not installed')
    expect(of('over')).toHaveLength(INTERVALS)
    for (const count of of('over')) {
      const { admitted, refused } = count
      expect(admitted).toBeGreaterThanOrEqual(LIMIT * 0.98)
      expect(admitted, JSON.stringify(count)).toBeLessThanOrEqual(LIMIT * (1 + STORES[store](count)))
      expect(refused).toBeGreaterThan(2 * LIMIT)
    }
  })

  test('refuse nobody at nine tenths of it', (context) => {
    if (!meetings.has(store)) return context.skip('it is not installed')
    expect(of('under')).toHaveLength(INTERVALS)
    for (const { admitted, refused } of of('under')) {
      expect(refused).toBe(0)
      expect(admitted).toBeGreaterThan(LIMIT / 2)
    }
  })
})
