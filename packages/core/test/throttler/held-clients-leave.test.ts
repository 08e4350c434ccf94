import { expect, test } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { ask, holding, leaving } from '../support/held.ts'
import { scene } from '../support/nodes.ts'

const LOCAL = { coordination: 'local', interval: 1_000 } as const

test('all levels count on arrival, a client that has gone gives back at every one, and nothing of it is left', async () => {
  const it = scene()
  const node = await holding(it, [
    { ...LOCAL, name: 'wait', limit: 1, delay: '5s' },
    { ...LOCAL, name: 'slow', interval: '1h', limit: 1, delay: () => '3s' },
    { ...LOCAL, name: 'hour', interval: '1h', limit: 10 },
    { ...LOCAL, name: 'pace', limit: 1, algorithm: leakyBucket({ burst: 9 }) },
  ])
  const left = () => node.peek('a').parts.map(({ remaining }) => remaining)
  const first = ask(it, node, 'a')
  await it.world.run(1)
  expect(first.at).toBe(0)
  expect(left()).toEqual([0, 0, 9, expect.closeTo(9, 1)])
  const response = leaving()
  const second = ask(it, node, 'a', { response })
  const third = ask(it, node, 'a')
  await it.world.run(10)
  expect(left()).toEqual([0, 0, 7, expect.closeTo(7, 1)])
  response.leave()
  await it.world.run(10)
  expect(second.error).toMatchObject({ code: 'WEIR_NOT_ACQUIRED', reason: 'aborted' })
  expect(node.waiting).toBe(2)
  expect(left()).toEqual([0, 0, 8, expect.closeTo(8, 1)])
  await it.world.run(10_000)
  // The request waited for the longest delay.
  expect(third.at).toBe(3_001)
  expect(third.decision?.parts.map(({ policy }) => policy?.name)).toEqual(['wait', 'slow', 'hour', 'pace'])
  expect(response.listenerCount('close')).toBe(0)
  expect(node.waiting).toBe(0)
  await it.close()
})

test('a client that has gone already is not waited for', async () => {
  const it = scene()
  const overs: number[] = []
  const node = await holding(it, { ...LOCAL, limit: 1, delay: (over) => 1_000 * overs.push(over) })
  const response = leaving()
  response.leave()
  ask(it, node, 'a')
  const gone = ask(it, node, 'a', { response })
  await it.world.run(1)
  expect(gone.error).toMatchObject({ reason: 'aborted' })
  // The unit was returned, so the next request is the first above the limit.
  expect(overs).toEqual([1])
  ask(it, node, 'a')
  expect(overs).toEqual([1, 1])
  await it.close()
})
