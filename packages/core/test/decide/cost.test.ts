import { describe, expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import { offer, scene, warnings } from '../support/nodes.ts'

test('a request takes its cost', () => {
  const { node } = scene()
  const throttler = node({ limit: 10, interval: '1m' })
  expect(throttler.check('a', 4)).toMatchObject({ allowed: true, cost: 4, remaining: 6 })
  expect(throttler.check('a', 0.5)).toMatchObject({ allowed: true, cost: 0.5, remaining: 5.5 })
})

test("a policy's own cost is taken where no other is given", () => {
  const { node } = scene()
  const throttler = node({ limit: 10, interval: '1m', cost: 4 })
  expect(throttler.check('a').remaining).toBe(6)
  expect(throttler.check('a', 1).remaining).toBe(5)
  expect(throttler.peek('a').remaining).toBe(5)

  const several = scene().node([
    { name: 'a', limit: 10, interval: '1m', cost: 4 },
    { name: 'b', limit: 10, interval: '1m' },
  ])
  expect(several.check('a').parts.map(({ cost }) => cost)).toEqual([4, 1])
})

describe.each(['background', 'periodic'] as const)('%s', (coordination) => {
  const policy = { limit: 10, interval: '1m', cooldown: '5m', coordination } as const

  test('a request too expensive for what is left is rejected alone', () => {
    const { node } = scene()
    const throttler = node(policy)
    offer(throttler, 'a', 1, 7)
    expect(throttler.check('a', 4)).toMatchObject({ allowed: false, reason: 'limit', cost: 0, remaining: 3 })
    expect(offer(throttler, 'a', 3)).toBe(3)
  })

  test('one above the limit is rejected and leaves the key open', () => {
    const { node } = scene()
    const throttler = node(policy)
    expect(throttler.check('a', 11).allowed).toBe(false)
    expect(throttler.check('a', 10).allowed).toBe(true)
  })

  test('reaching the limit exactly starts no cooldown', async () => {
    const { world, node } = scene()
    const throttler = node(policy)
    const blocked: unknown[] = []
    throttler.on('blocked', (event) => blocked.push(event))
    expect(offer(throttler, 'a', 2, 5)).toBe(2)
    await world.run(60_000)
    expect(blocked).toEqual([])
    expect(throttler.check('a').allowed).toBe(true)
  })

  test('an expensive request that is rejected starts one only when a request of cost 1 would not fit either', () => {
    const { node } = scene()
    const throttler = node(policy)
    offer(throttler, 'a', 1, 9)
    expect(throttler.check('a', 2).reason).toBe('limit')
    expect(snapshot(throttler).blocked).toEqual([])
    offer(throttler, 'a', 1)
    expect(throttler.check('a', 2).reason).toBe('cooldown')
    expect(snapshot(throttler).blocked).toHaveLength(1)
  })
})

describe('a cost that is no finite number > 0 counts as 1, with one warning', () => {
  const costs: unknown[] = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, '2', null, 2n, true, [2], () => 2]
  test.each(costs)('%s', (cost) => {
    const { node } = scene()
    const throttler = node({ limit: 10, interval: '1m' })
    const heard: (string | undefined)[] = []
    throttler.on('warning', ({ error }) => heard.push(error.code))
    expect(throttler.check('a', cost as number)).toMatchObject({ allowed: true, cost: 1, remaining: 9 })
    expect(throttler.check('a', cost as number)).toMatchObject({ allowed: true, cost: 1, remaining: 8 })
    expect(throttler.peek('a', cost as number).remaining).toBe(8)
    expect(heard).toEqual(['WEIR_WARN_INVALID_COST'])
  })

  test('once for each policy', () => {
    const { node } = scene()
    const throttler = node([
      { name: 'a', limit: 10, interval: '1m' },
      { name: 'b', limit: 10, interval: '1m' },
    ])
    const heard: string[] = []
    throttler.on('warning', ({ error }) => heard.push(error.code))
    for (let i = 0; i < 3; i++) throttler.check('x', Number.NaN)
    expect(heard).toEqual(['WEIR_WARN_INVALID_COST', 'WEIR_WARN_INVALID_COST'])
  })

  test('as a warning of the process when nobody listens', async () => {
    const heard = warnings()
    const { node } = scene()
    const throttler = node({ limit: 10, interval: '1m' })
    throttler.check('a', -5)
    throttler.check('a', -5)
    await new Promise((resolve) => setImmediate(resolve))
    const ours = heard.filter((warning) => (warning as { code?: string }).code === 'WEIR_WARN_INVALID_COST')
    expect(ours).toHaveLength(1)
    expect(ours[0]?.message).toContain('-5')
  })
})
