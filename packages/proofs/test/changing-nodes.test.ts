import { setTimeout as sleep } from 'node:timers/promises'
import { createThrottler, type PolicyOptions, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { bookedOf } from '../src/faults/books.ts'
import { BOOKS, BOOKS_SPANS, booksInterval } from '../src/faults/protocol.ts'

vi.setConfig({ testTimeout: 60_000 })

const INTERVAL = 1_000
const TICK = 10

let server: RedisServer
let namespaces = 0
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

/** Processes that start and end with one Redis, under a load that is spread over them. */
class Cluster {
  readonly namespace = `changing-${process.pid}-${++namespaces}`
  readonly nodes: Throttler[] = []
  allowed = 0
  /** Units allowed in each interval of the store's clock. */
  readonly #byInterval = new Map<number, number>()
  readonly #books = booksInterval()
  /** The longest time for which this process was blocked, in milliseconds. */
  held = 0

  async add(count: number, limit: number): Promise<void> {
    const policies: PolicyOptions[] = [
      { name: 'limited', limit, interval: INTERVAL },
      { name: BOOKS, limit: 1e9, interval: this.#books, spans: BOOKS_SPANS, coordination: 'periodic', failMode: 'open' },
    ]
    // Throttlers with another limit stand for another process. Another spelling of the server's name makes them separate here.
    const host = limit < 100 ? '127.0.0.1' : 'localhost'
    const store = redisStore({ port: server.port, host }, { namespace: this.namespace })
    const made = Array.from({ length: count }, () => createThrottler({ policies, store, heartbeat: 100 }).start())
    this.nodes.push(...made)
    await vi.waitFor(() => expect(made.every(({ state }) => state === 'synced')).toBe(true), 20_000)
  }

  async remove(count: number): Promise<void> {
    await Promise.all(this.nodes.splice(0, count).map((node) => node.close()))
  }

  /** Sends each process one request every 10 ms, for some intervals. */
  async load(intervals: number): Promise<void> {
    const end = performance.now() + intervals * INTERVAL
    for (let now = performance.now(); now < end; ) {
      const interval = Math.floor(Date.now() / INTERVAL)
      for (const node of this.nodes) {
        if (!node.check('key').allowed) continue
        this.allowed++
        this.#byInterval.set(interval, (this.#byInterval.get(interval) ?? 0) + 1)
      }
      await sleep(TICK)
      const then = performance.now()
      this.held = Math.max(this.held, then - now)
      now = then
    }
  }

  /** Continues the load until a condition is true. The necessary number of requests depends on the machine's other work. */
  async loadUntil(what: string, holds: () => boolean): Promise<void> {
    const end = performance.now() + 30_000
    while (!holds()) {
      if (performance.now() > end) throw new Error(`It never became so: ${what}.`)
      await this.load(0.05)
    }
  }

  /** Starts to count intervals again. */
  forget(): void {
    this.#byInterval.clear()
  }

  get worst(): number {
    return Math.max(0, ...this.#byInterval.values())
  }

  async booked(): Promise<number> {
    return (await bookedOf([server], this.namespace)).get('key') ?? 0
  }
}

test('from 3 nodes to 12 and back: the limit holds, and no count is lost', async () => {
  const limit = 100
  const cluster = new Cluster()
  await cluster.add(3, limit)
  await cluster.load(1)
  await cluster.add(9, limit)
  await cluster.load(2)
  await vi.waitFor(() => expect(cluster.nodes.map((node) => snapshot(node).nodes)).toEqual(cluster.nodes.map(() => 12)), 5_000)
  await cluster.remove(9)
  await cluster.load(2)
  await vi.waitFor(() => expect(cluster.nodes.map((node) => snapshot(node).nodes)).toEqual([3, 3, 3]), 5_000)
  await cluster.remove(3)
  // The units that twelve processes allow before their first sync: one each, and all that come while this process is delayed.
  const unheard = (12 * cluster.held) / TICK
  expect(cluster.worst).toBeLessThanOrEqual(limit * 1.12 + unheard)
  expect(await cluster.booked()).toBe(cluster.allowed)
})

test('a rolling restart with another limit: old and new nodes share totals, and each keeps its own limit', async () => {
  const cluster = new Cluster()
  await cluster.add(3, 200)
  await cluster.load(0.5)
  await cluster.add(1, 50)
  await cluster.remove(1)
  const [old, , young] = cluster.nodes as [Throttler, Throttler, Throttler]
  // The new limit is used up and the old one is not.
  const isShared = () => !young.peek('key').allowed && old.peek('key').allowed && old.peek('key').remaining < 200 - 50
  await cluster.loadUntil('the totals are shared', isShared)
  expect(snapshot(old).policies[0]?.allowed).toBeGreaterThan(snapshot(young).policies[0]?.allowed ?? 0)
  await cluster.add(2, 50)
  await cluster.remove(2)
  // The running interval still has units of the old limit.
  await sleep(INTERVAL - (Date.now() % INTERVAL) + 20)
  cluster.forget()
  await cluster.loadUntil('the new limit is used', () => cluster.worst >= 45)
  await cluster.load(0.8)
  expect(cluster.worst).toBeLessThanOrEqual(50 * 1.1 + (3 * cluster.held) / TICK)
  await cluster.remove(3)
  expect(await cluster.booked()).toBe(cluster.allowed)
})
