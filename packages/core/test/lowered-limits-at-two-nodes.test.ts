import { expect, test } from 'vitest'
import type { AnyAlgorithm, Coordination } from '../src/algorithms/algorithm.ts'
import type { AnyPolicyOptions } from '../src/decide/policy.ts'
import { EACH_CELL } from './support/cells.ts'
import { scene } from './support/nodes.ts'

/** Two processes with a store. Each has allowed requests of the key and has received the count of the other. */
async function twoNodes(algorithm: AnyAlgorithm, coordination: Coordination, limit: number) {
  const { world, node, close } = scene()
  const policy = (limit: number): AnyPolicyOptions =>
    ({ name: 'a', ...(algorithm.slots === undefined && { interval: '1m' }), algorithm, coordination, limit }) as AnyPolicyOptions
  const nodes = [0, 1].map(() => node(policy(limit)))
  for (const one of nodes) one.start()
  await world.run(1_000)
  const offer = async (count: number, turns = 1): Promise<number> => {
    let allowed = 0
    for (let i = 0; i < count; i++) {
      for (const one of nodes) void one.checkAsync('k').then((decision) => (allowed += decision.allowed ? 1 : 0))
      await world.run(5)
    }
    // The queue is loaded with the first request that waits, which takes real time.
    for (let turn = 0; turn < turns; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
      await world.run(10)
    }
    return allowed
  }
  const limitTo = (limit: number): void => {
    for (const one of nodes) one.update([policy(limit)])
  }
  return { offer, limitTo, rest: (time: number) => world.run(time), close }
}

// A bucket that delays requests lets them wait until they fit the lowered limit.
const SHARED = EACH_CELL.filter(({ algorithm, coordination }) => coordination !== 'local' && algorithm.delay === undefined)

test.each(SHARED)(
  '$name, $coordination: a lowered limit counts at each node, whatever it knows of, or has taken ahead',
  async ({ algorithm, coordination }) => {
    const it = await twoNodes(algorithm, coordination, 30)
    expect(await it.offer(6, 200)).toBe(12)
    await it.rest(20_000)
    it.limitTo(2)
    expect(await it.offer(10)).toBe(0)
    it.limitTo(30)
    expect(await it.offer(1, 50)).toBe(2)
    await it.close()
  },
)
