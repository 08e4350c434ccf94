import { expect, test } from 'vitest'
import type { Decision } from '../../src/decide/decision.ts'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { DelayedRequest } from '../../src/http/delayed-request.ts'
import { leakyBucket } from '../../src/index.ts'
import { Occupancy } from '../../src/queue/occupancy.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const PLACES = 16

/** Lets virtual time pass, and code be loaded, which takes real time. */
async function pass(here: Scene, milliseconds: number): Promise<void> {
  for (let i = 0; i < milliseconds; i += 5) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(5)
  }
}

/** As a guard does: decides about a request of a client, and holds it for the delay of its decision. */
async function request(node: Node, key: string, client: string | undefined): Promise<Decision | undefined> {
  const holding = new DelayedRequest(client, undefined, () => client, { clock: node.clock, timeout: 1_000 })
  const decision = await adapterOf(node).decideAsync([key], [1], [0], 1, undefined, holding)
  if (!decision.allowed || decision.delayMs === 0) return decision
  return node.waitFor(decision, undefined, client).catch(({ reason }) => {
    expect(reason).toBe('queue-full')
    return undefined
  })
}

test.each(EACH_CELL)('a client with very many keys leaves room to others in the queue: $name, $coordination', async (cell) => {
  const { algorithm, name, coordination } = cell
  const here = scene()
  const policy = {
    limit: 1,
    algorithm: name === 'leakyBucket()' ? leakyBucket({ burst: 3 }) : algorithm,
    coordination,
    ...(name !== 'concurrency()' && { interval: '1h' }),
    ...(name !== 'leakyBucket()' && { delay: '2h' }),
  }
  const node = here.node(policy as unknown as AnyPolicyOptions, {
    alone: coordination === 'local',
    queue: { maxWaiting: PLACES, maxWait: '3h' },
  })
  node.start()
  let loaded = false
  const loads = Promise.all([request(node, 'loads the code', 'x'), waiting(here, node)]).then(() => {
    loaded = true
  })
  while (!loaded) await pass(here, 50)
  await loads
  let keys = 0
  /** Requests of a client, of which every second one finds no room. Returns how many more are held afterwards. */
  const flood = async (client: string | undefined, count: number): Promise<number> => {
    const before = node.waiting
    for (let i = 0; i < count; i++) {
      const key = `${client} ${keys++}`
      void request(node, key, client)
      await pass(here, 20)
      request(node, key, client).then(
        (decision) => decision?.allowed === true && algorithm.slots !== undefined && node.release(decision),
        () => {},
      )
      await pass(here, 10)
    }
    return node.waiting - before
  }
  // Each gets as many as are free then.
  expect(await flood('m', 20)).toBe(PLACES / 2)
  expect(await flood('n', 12)).toBe(PLACES / 4)
  expect(await flood('m', 2)).toBe(0)
  expect(await flood('o', 1)).toBe(1)
  expect(await flood('p', 1)).toBe(1)
  // One that is not known is bounded by the sum.
  expect(await flood(undefined, 4)).toBe(2)
  expect(await flood('q', 2)).toBe(0)
  await here.close()
  expect(node.waiting).toBe(0)
})

test('a client may have as many places as are free, and what is remembered of clients ends with their last request', () => {
  const occupancy = new Occupancy(100)
  const had = (client: string): number => {
    let count = 0
    for (; !occupancy.isFull(client); count++) occupancy.add(client)
    return count
  }
  expect([had('a'), had('b'), had('c'), had('d'), had('a')]).toEqual([50, 25, 13, 6, 0])
  for (let i = 0; i < 25; i++) occupancy.remove('a')
  // There is room for a client with fewer than the others.
  expect([had('a'), had('d'), had('e')]).toEqual([3, 11, 9])
  const single = new Occupancy(1)
  expect(single.isFull('a')).toBe(false)
  single.add('a')
  expect([single.isFull('a'), single.isFull('b'), single.isFull(undefined)]).toEqual([true, true, true])
})
