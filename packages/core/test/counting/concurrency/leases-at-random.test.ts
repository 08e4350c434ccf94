import { SEED, seeds } from '@weir/tooling/seed'
import { expect, test } from 'vitest'
import { concurrency } from '../../../src/algorithms/concurrency/index.ts'
import type { Decision } from '../../../src/decide/decision.ts'
import { cuttable } from '../../support/cuttable.ts'
import { type Node, scene, seeded } from '../../support/nodes.ts'

const RUNS = 20
const NODES = 3
const TIME = 20_000
/** A heartbeat lifetime, and some time to notice. */
const NOTICED = 6_000

interface Worker {
  readonly node: Node
  readonly way: { cut: boolean }
  /** Requests in flight. Requests of a killed process have ended. */
  readonly running: Set<Decision>
}

/** Random events on three processes, one after another: requests come and end, and processes are killed and start again. */
async function live(seed: number): Promise<{ most: number; limit: number; allowed: number; after: number }> {
  const random = seeded(seed)
  const between = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1))
  const limit = between(1, 12)
  const policy = { name: 'slots', limit, algorithm: concurrency(), coordination: 'leased', failMode: 'closed' } as const
  const here = scene({ seed })
  const { world, store } = here
  store.roundTrip = between(0, 20)
  store.announces = random() < 0.8
  const begin = (): Worker => {
    const { node, way } = cuttable(here, policy)
    node.on('warning', () => {})
    node.on('storeDown', () => {})
    node.start()
    return { node, way, running: new Set() }
  }
  const workers = Array.from({ length: NODES }, begin)
  const killed: Worker[] = []
  let most = 0
  let allowed = 0
  const held = (): number => workers.reduce((sum, { running }) => sum + running.size, 0)
  const serve = async (worker: Worker, time: number): Promise<void> => {
    const decision = await worker.node.checkAsync('a').catch(() => undefined)
    if (decision?.allowed !== true) return
    if (worker.way.cut) return
    worker.running.add(decision)
    allowed++
    most = Math.max(most, held())
    world.setTimer(() => {
      if (worker.running.delete(decision)) worker.node.release(decision)
    }, time)
  }
  const load = between(1, 4) * limit
  const longest = between(50, 3_000)
  const kills = Array.from({ length: between(0, 3) }, () => between(3_000, TIME))
  while (world.time < TIME) {
    // Keeps about `load` requests in flight, some of which begin at the same moment.
    await world.run(between(0, Math.max(20, Math.ceil((2 * longest) / load))))
    store.requests.length = 0
    const at = random() < 0.5 ? 0 : between(0, NODES - 1)
    void serve(workers[at] as Worker, between(1, longest))
    if (kills.some((time) => time <= world.time)) {
      kills.splice(
        kills.findIndex((time) => time <= world.time),
        1,
      )
      const gone = between(0, NODES - 1)
      const dead = workers[gone] as Worker
      dead.way.cut = true
      dead.running.clear()
      killed.push(dead)
      workers[gone] = begin()
    }
  }
  await world.run(longest + NOTICED)
  // Without requests in flight, one process may use all slots.
  const last = workers[between(0, NODES - 1)] as Worker
  let after = 0
  for (let i = 0; i < limit + 2; i++) {
    const decision = last.node.checkAsync('a')
    await world.run(200)
    if ((await decision).allowed) after++
  }
  for (const { way } of killed) way.cut = false
  await here.close()
  return { most, limit, allowed, after }
}

test('whatever comes, ends and is killed: never more than the limit together, and nothing is lost for long', async () => {
  let full = 0
  for (const seed of seeds(RUNS)) {
    const { most, limit, allowed, after } = await live(seed)
    const what = `FC_SEED=${seed}`
    expect(most, what).toBeLessThanOrEqual(limit)
    expect(allowed, what).toBeGreaterThan(limit)
    expect(after, what).toBe(limit)
    if (most === limit) full++
  }
  expect(full, `FC_SEED=${SEED}: all slots are in use at some time`).toBeGreaterThan(RUNS / 4)
}, 120_000)
