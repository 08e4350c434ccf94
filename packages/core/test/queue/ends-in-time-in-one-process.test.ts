import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { anyAlgorithm, arrival } from '../support/algorithms.ts'
import { scene } from '../support/nodes.ts'
import { type Outcome, PRIORITIES, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

interface Wish {
  readonly key: string
  readonly after: number
  readonly cost: number
  readonly priority: number
  readonly timeout: number
  readonly abortAfter: number | undefined
}

const wish: fc.Arbitrary<Wish> = fc.record({
  key: fc.constantFrom('a', 'b', 'c'),
  ...arrival,
  priority: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: -2, max: 2 })),
  timeout: fc.integer({ min: 0, max: 4_000 }),
  abortAfter: fc.option(fc.integer({ min: 0, max: 2_000 }), { nil: undefined, freq: 4 }),
})

test('whoever waits ends in time, in turn, and never do more go than the algorithm allows', async () => {
  await fc.assert(
    fc.asyncProperty(anyAlgorithm, fc.boolean(), fc.array(wish, { minLength: 1, maxLength: 60 }), async (algorithm, together, wishes) => {
      const it = scene()
      const policy = { limit: 4, interval: 500, algorithm, coordination: 'local', ...(together && { key: 'all' as const }) } as const
      const node = it.node(policy)
      const queue = await waiting(it, node)
      const made: { wish: Wish; at: number; outcome: Outcome }[] = []
      for (const wish of wishes) {
        await it.world.run(wish.after)
        const controller = new AbortController()
        const { key, cost, priority, timeout, abortAfter } = wish
        const outcome = queue.acquire(key, { cost, priority: PRIORITIES[priority + 2] as 'default', timeout, signal: controller.signal })
        made.push({ wish, at: it.world.time, outcome })
        if (abortAfter !== undefined) it.world.setTimer(() => controller.abort(), abortAfter)
      }
      await it.world.run(10_000)
      expect(node.waiting).toBe(0)
      expect(node.clock.outstanding).toBeLessThanOrEqual(1)

      for (const { wish, at, outcome } of made) {
        expect(outcome.at, 'ended').toBeDefined()
        expect(outcome.at as number).toBeLessThanOrEqual(at + wish.timeout + 1)
        if (outcome.failure !== undefined) expect(outcome.failure).toMatch(/^(timeout|aborted)$/)
        // A request fails at once only if it certainly can't make its timeout.
        const { error } = outcome
        if (outcome.failure === 'timeout' && outcome.at === at && wish.timeout > 0)
          expect(error?.retryAfterMs).toBeGreaterThan(wish.timeout)
      }

      // Requests of a key and priority are allowed in order of arrival.
      for (const one of made)
        for (const other of made) {
          if (one.at > other.at || made.indexOf(one) >= made.indexOf(other)) continue
          if (one.wish.key !== other.wish.key || one.wish.priority < other.wish.priority) continue
          if (one.outcome.decision === undefined || other.outcome.decision === undefined) continue
          expect(queue.ended.indexOf(one.outcome)).toBeLessThan(queue.ended.indexOf(other.outcome))
        }

      // The pace is kept, even if requests were cancelled.
      if (algorithm.delay !== undefined) {
        const wishes = new Map(made.map(({ wish, outcome }) => [outcome, wish]))
        for (const key of together ? ['all'] : ['a', 'b', 'c']) {
          let before = Number.NEGATIVE_INFINITY
          for (const outcome of queue.ended) {
            const wish = wishes.get(outcome) as Wish
            if (outcome.decision === undefined || (!together && wish.key !== key)) continue
            expect((outcome.at as number) - before, `before ${outcome.at}`).toBeGreaterThanOrEqual(wish.cost * 125 - 3)
            before = outcome.at as number
          }
        }
      }

      // A fresh throttler allows the same requests in the same order.
      if (algorithm.delay === undefined) {
        const again = scene()
        const model = again.node(policy)
        const costs = new Map(made.map(({ wish, outcome }) => [outcome, wish]))
        for (const outcome of queue.ended) {
          if (outcome.decision === undefined) continue
          await again.world.runTo(outcome.at as number)
          const { key, cost } = costs.get(outcome) as Wish
          expect(model.check(key, cost).allowed, `at ${outcome.at}`).toBe(true)
        }
        await again.close()
      }
      await it.close()
    }),
    { numRuns: 100 },
  )
})

test('nobody is rejected at once who could have gone in time', async () => {
  await fc.assert(
    fc.asyncProperty(
      anyAlgorithm,
      fc.integer({ min: 0, max: 600 }),
      fc.integer({ min: 0, max: 4 }),
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 }),
      async (algorithm, start, before, costs) => {
        const policy = { limit: 4, interval: 500, algorithm, coordination: 'local' } as const
        const times = async (timeout: number | undefined): Promise<(number | undefined)[]> => {
          const it = scene()
          const node = it.node(policy)
          const queue = await waiting(it, node)
          await it.world.runTo(start)
          for (let i = 0; i < before; i++) node.check('a')
          const made = costs.map((cost, i) =>
            queue.acquire('a', { cost, ...(i === costs.length - 1 && timeout !== undefined && { timeout }) }),
          )
          await it.world.run(10_000)
          await it.close()
          return made.map(({ at, decision }) => (decision === undefined ? undefined : (at as number) - start))
        }
        const [last] = (await times(undefined)).slice(-1)
        expect(last).toBeDefined()
        expect((await times(last as number)).at(-1)).toBe(last)
      },
    ),
    { numRuns: 100 },
  )
})
