import { expect, test } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { CENTRAL, started } from '../support/central.ts'
import { scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const PACED = { limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 3 }), coordination: 'local' } as const

test('a decision is held for its delay, and tells then what is left and that there is nothing to wait for', async () => {
  const it = scene()
  const node = it.node(PACED)
  await waiting(it, node)
  const decisions = [node.check('a'), node.check('a'), node.check('a')]
  expect(decisions.map(({ delayMs: delay }) => delay)).toEqual([0, 100, 200])
  expect(await node.waitFor(decisions[0] as (typeof decisions)[0])).toBe(decisions[0])
  const held = node.waitFor(decisions[2] as (typeof decisions)[0])
  await it.world.run(200)
  const went = await held
  expect(went).toMatchObject({ allowed: true, delayMs: 0, remaining: 3, cost: 1 })
  // The decision's units can still be returned.
  node.refund(went)
  expect(node.peek('a').remaining).toBe(4)
  await it.close()
})

test('one that is aborted gives back at every level, and those behind it move up, whoever waits there', async () => {
  const it = scene()
  const node = it.node([
    { ...PACED, name: 'pace', key: 'all' },
    { name: 'hour', limit: 10, interval: '1h', coordination: 'local' },
  ])
  const queue = await waiting(it, node)
  node.check('a')
  const controller = new AbortController()
  const gone = node.waitFor(node.check('b'), controller.signal)
  const next = node.waitFor(node.check('c')).then(() => it.world.time)
  const last = queue.acquire('d')
  await it.world.run(50)
  controller.abort()
  await expect(gone).rejects.toMatchObject({ reason: 'aborted' })
  expect(node.peek('b', 1).parts[1]?.remaining).toBe(10)
  await it.world.run(500)
  expect([await next, last.at]).toEqual([100, 200])
  await it.close()
})

test('decisions of the store are held as well', async () => {
  const it = scene()
  const node = it.node({ ...CENTRAL, limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 3 }) })
  await started(it, node)
  await waiting(it, node)
  const asked = Promise.all([node.checkAsync('a'), node.checkAsync('a')])
  await it.world.run(30)
  const [, second] = await asked
  const begun = it.world.time
  expect(second?.delayMs).toBeGreaterThan(50)
  const held = node.waitFor(second as NonNullable<typeof second>).then(() => it.world.time)
  await it.world.run(300)
  expect((await held) - begun).toBeLessThanOrEqual(102)
  await it.close()
})
