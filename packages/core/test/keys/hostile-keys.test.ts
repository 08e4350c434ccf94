import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import type { Policy } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { idOfKey } from '../../src/keys/key-id.ts'
import { bounded } from '../../src/keys/key-text.ts'
import { anyKey, hostileKeys, type Node, offer, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

// These tests compute a lot, so a busy machine needs time for them.
vi.setConfig({ testTimeout: 30_000 })

describe.each([true, false])('keys that look like something else (one in a full table: %s)', (full) => {
  test('each has its own counter, here, in the store and at another node', async () => {
    const { world, node, store, close } = scene()
    const policy = { limit: 1_000, interval: '1m' } as const
    const one = node(policy, full ? { maxKeys: hostileKeys.length } : {})
    const two = node(policy)
    two.start()
    hostileKeys.forEach((key, i) => {
      expect(offer(one, key, i + 1)).toBe(i + 1)
      expect(one.peek(key).remaining).toBe(1_000 - i - 1)
    })
    if (full) offer(one, 'fell into the shared counter', 500)
    await world.run(50)
    for (const key of hostileKeys) offer(two, key, 400)
    await close()
    hostileKeys.forEach((key, i) => {
      expect(store.total(one.policies[0] as Policy, idOfKey(bounded(key)), EPOCH).taken).toBe(i + 1 + 400)
    })
    expect(store.total(one.policies[0] as Policy, '\u0000overflow', EPOCH).taken).toBe(full ? 500 : 0)
  })
})

test('nobody can use up, block or free the counter that keys share when the table is full', () => {
  const { node } = scene()
  const throttler = node({ limit: 10, interval: '1m' }, { maxKeys: 40 })
  for (const key of hostileKeys) offer(throttler, key, 10)
  throttler.block('\u0000overflow', '1m')
  for (let i = 0; snapshot(throttler).policies[0]?.keys !== 40; i++) throttler.check(`filler ${i}`)
  expect(throttler.check('untrusted client')).toMatchObject({ allowed: true, remaining: 9 })
})

test('random keys are counted apart, each exactly', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(anyKey, { minLength: 2, maxLength: 12 }), async (keys) => {
      const { world, node, store, close } = scene()
      const [one, two] = [0, 1].map(() => node({ limit: 50, interval: '1m' })) as [Node, Node]
      keys.forEach((key, i) => {
        expect(offer(one, key, 20 + i)).toBe(20 + i)
        expect(one.peek(key).remaining).toBe(50 - 20 - i)
      })
      for (const key of keys) expect(offer(two, key, 1)).toBe(1)
      await world.run(50)
      await close()
      keys.forEach((key, i) => {
        expect(store.total(one.policies[0] as Policy, idOfKey(bounded(key)), EPOCH).taken).toBe(21 + i)
      })
    }),
    { numRuns: 50 },
  )
})
