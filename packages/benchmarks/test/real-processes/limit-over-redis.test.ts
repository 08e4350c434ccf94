import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Count, Task } from './node.ts'

const NODES = 4
const LIMIT = 1000
const INTERVAL = 10_000
const INTERVALS = 3
/** Loads of their own keys in Redis, sent at the same time. */
const LOADS = { over: 5, under: 0.9 }
/** Starting four processes, at most one interval until the next one begins, three of them, and closing. */
const PATIENCE = 120_000

let server: RedisServer
const children: ChildProcess[] = []

beforeAll(async () => {
  server = await RedisServer.start()
}, PATIENCE)

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await server.stop()
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
    url: server.url,
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
  for (const { load, interval, admitted, refused } of answers.flat()) {
    if (interval < first || interval >= first + INTERVALS) continue
    const id = `${load} ${interval}`
    const total = totals.get(id) ?? { load, interval, admitted: 0, refused: 0 }
    totals.set(id, { load, interval, admitted: total.admitted + admitted, refused: total.refused + refused })
  }
  return [...totals.values()]
}

test(
  'four processes over Redis keep a limit within 2 % at five times the limit, and refuse nobody at nine tenths',
  async () => {
    const counts = await run()
    const over = counts.filter(({ load }) => load === 'over')
    const under = counts.filter(({ load }) => load === 'under')
    expect([over.length, under.length]).toEqual([INTERVALS, INTERVALS])
    for (const { admitted, refused } of over) {
      expect(admitted).toBeGreaterThanOrEqual(LIMIT * 0.98)
      expect(admitted).toBeLessThanOrEqual(LIMIT * 1.02)
      expect(refused).toBeGreaterThan(2 * LIMIT)
    }
    for (const { admitted, refused } of under) {
      expect(refused).toBe(0)
      expect(admitted).toBeGreaterThan(LIMIT / 2)
    }
  },
  PATIENCE,
)
