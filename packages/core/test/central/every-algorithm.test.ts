import { describe, expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { escalating } from '../../src/decide/escalating.ts'
import { snapshot } from '../../src/inspect/snapshot.ts'
import { allowed, ask, CENTRAL, started } from '../support/central.ts'
import { scene } from '../support/nodes.ts'

/** Every algorithm, for tests of the other features with coordination 'central'. All of them allow ten requests at once here. */
const ALGORITHMS: readonly Algorithm[] = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  leakyBucket({ burst: 9, immediate: 9 }),
]

for (const algorithm of ALGORITHMS) {
  const policy = { ...CENTRAL, algorithm }

  describe(algorithm.name, () => {
    test('a cooldown begins with the first request that the store rejects, at all nodes', async () => {
      const it = scene()
      const [a, b] = [it.node({ ...policy, cooldown: 30_000 }), it.node({ ...policy, cooldown: 30_000 })]
      await started(it, a, b)
      expect(allowed(await ask(it, a, 'k', 10))).toBe(10)
      expect(a.peek('k', 0).allowed).toBe(true)
      const [rejected] = (await ask(it, a, 'k', 1)) as [Decision]
      expect(rejected).toMatchObject({ allowed: false, reason: 'cooldown' })
      expect(rejected.retryAfterMs).toBeGreaterThanOrEqual(30_000)
      await it.world.run(20)
      const asked = it.store.decided.length
      expect((await ask(it, b, 'k', 1))[0]).toMatchObject({ allowed: false, reason: 'cooldown' })
      expect(it.store.decided.length).toBe(asked)
      await it.world.run(30_000)
      expect(allowed(await ask(it, b, 'k', 1))).toBe(1)
      await it.close()
    })

    test('a cooldown that grows does so by the blocks of all nodes', async () => {
      const it = scene()
      const cooldown = escalating({ base: '20s', factor: 2, max: '5m' })
      const [a, b] = [it.node({ ...policy, cooldown }), it.node({ ...policy, cooldown })]
      await started(it, a, b)
      await ask(it, a, 'k', 11)
      await it.world.run(25_000)
      const last = (await ask(it, b, 'k', 11)).at(-1) as Decision
      expect(last.reason).toBe('cooldown')
      await it.world.run(50)
      expect(b.peek('k', 0).retryAfterMs).toBeGreaterThan(35_000)
      await it.close()
    })

    test('a block by hand asks nobody, at any node, and ends when it is lifted', async () => {
      const it = scene()
      const [a, b] = [it.node(policy), it.node(policy)]
      await started(it, a, b)
      a.block('k', '1h')
      await it.world.run(20)
      const asked = it.store.decided.length
      expect((await ask(it, b, 'k', 1))[0]).toMatchObject({ allowed: false, reason: 'blocked' })
      expect(it.store.decided.length).toBe(asked)
      b.unblock('k')
      await it.world.run(20)
      expect(allowed(await ask(it, a, 'k', 1))).toBe(1)
      await it.close()
    })

    test('an update of the limit keeps counts and blocks; another interval begins anew', async () => {
      const it = scene()
      const node = it.node(policy)
      await started(it, node)
      await ask(it, node, 'k', 10)
      node.block('blocked', '1h')
      node.update([{ ...policy, limit: 12 }])
      const more = allowed(await ask(it, node, 'k', 5))
      // The leaky bucket's burst does not follow its limit.
      expect(more).toBe(algorithm.name === 'leakyBucket()' ? 0 : 2)
      expect((await ask(it, node, 'blocked', 1))[0]).toMatchObject({ reason: 'blocked' })
      node.update([{ ...policy, interval: 20_000 }])
      await it.world.run(1_100)
      expect(allowed(await ask(it, node, 'k', 11))).toBe(10)
      await it.close()
    })

    test('peek tells what the store said last, advanced to now; usage asks; a snapshot shows both', async () => {
      const it = scene()
      const [a, b] = [it.node(policy), it.node(policy)]
      await started(it, a, b)
      await ask(it, a, 'k', 6)
      const [last] = (await ask(it, b, 'k', 1)) as [Decision]
      expect(b.peek('k').remaining).toBeCloseTo(last.remaining, 1)
      const usage = b.usage('k')
      await it.world.run(20)
      const [used] = await usage
      expect(used).toMatchObject({ source: 'store', limit: 10 })
      expect(used?.used).toBeCloseTo(7, 0)
      expect(snapshot(b).policies[0]).toMatchObject({
        coordination: 'central',
        algorithm: algorithm.id,
        limit: 10,
        allowed: 1,
        rejected: 0,
      })
      expect(snapshot(b).top[0]?.used).toBeCloseTo(7, 0)
      await it.world.run(25_000)
      expect(b.peek('k').remaining).toBe(10)
      await it.close()
    })

    test.each([
      ['open', 30],
      ['closed', 0],
      ['share', 4],
    ] as const)('without the store, failMode: %s allows %i of 30; the store is told of them', async (failMode, count) => {
      const it = scene()
      const [a, b] = [it.node({ ...policy, failMode }), it.node({ ...policy, failMode })]
      await started(it, a, b)
      await ask(it, a, 'k', 2)
      it.store.failure = new Error('away')
      it.store.health = 'rejecting'
      await it.world.run(1_500)
      expect(a.state).toBe('storeDown')
      const asked = it.store.decided.length
      const decisions = await ask(it, a, 'k', 30)
      // Units that drained from a bucket meanwhile are allowed in addition.
      expect(allowed(decisions) - count).toBeGreaterThanOrEqual(0)
      expect(allowed(decisions) - count).toBeLessThanOrEqual(1)
      expect(it.store.decided.length).toBe(asked)
      if (failMode !== 'open') expect(decisions.at(-1)).toMatchObject({ allowed: false, reason: 'storeDown' })
      expect(decisions.at(-1)?.allowed === false && (decisions.at(-1)?.retryAfterMs ?? 0) < 1).toBe(false)
      it.store.health = 'up'
      await it.world.run(1_000)
      expect(a.state).toBe('synced')
      const [after] = (await ask(it, b, 'k', 1)) as [Decision]
      if (failMode === 'open') expect(after.allowed).toBe(false)
      else expect(Math.abs(after.remaining - (10 - 2 - 1 - allowed(decisions)))).toBeLessThanOrEqual(3)
      await it.close()
    })
  })
}
