import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { DelayedRequest } from '../../src/http/delayed-request.ts'
import type { Answering } from '../../src/report/when-ended.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { arrival, exactAlgorithms } from '../support/algorithms.ts'
import { scene } from '../support/nodes.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

interface Wish {
  readonly key: string
  readonly after: number
  readonly cost: number
  readonly leaveAfter: number | undefined
}

const wish: fc.Arbitrary<Wish> = fc.record({
  key: fc.constantFrom('a', 'b'),
  ...arrival,
  leaveAfter: fc.option(fc.integer({ min: 0, max: 1_500 }), { nil: undefined, freq: 2 }),
})

interface Asked {
  readonly wish: Wish
  readonly at: number
  ended: number | undefined
  decision: Decision | undefined
  gone: boolean
  readonly response: EventEmitter
}

test('whoever is held goes on or is rejected in time, gives back what it took when it leaves, and never do more go than the limit lets', async () => {
  await fc.assert(
    fc.asyncProperty(
      exactAlgorithms,
      fc.boolean(),
      fc.boolean(),
      fc.integer({ min: 1, max: 2_000 }),
      fc.array(wish, { minLength: 1, maxLength: 50 }),
      async (algorithm, slows, paces, most, wishes) => {
        const it = scene()
        const wait = { name: 'wait', limit: 4, interval: 500, algorithm, coordination: 'local', delay: most } as const
        const slow = {
          name: 'slow',
          limit: 6,
          interval: 2_000,
          coordination: 'local',
          delay: (over: number) => (over > 9 ? Infinity : 50 * over),
        } as const
        const pace = { name: 'pace', limit: 100, interval: 1_000, algorithm: leakyBucket({ burst: 30 }), coordination: 'local' } as const
        const long = { name: 'long', limit: 60, interval: '1h', coordination: 'local' } as const
        const policies = [wait, ...(slows ? [slow] : []), ...(paces ? [pace] : []), long]
        const node = it.node(policies, { queue: { maxWaitingPerKey: 12, maxWaiting: 30 } })
        await node.checkAsync('loads what holds requests')
        const asked: Asked[] = []
        for (const wish of wishes) {
          await it.world.run(wish.after)
          const response = Object.assign(new EventEmitter(), { destroyed: false })
          const one: Asked = { wish, at: it.world.time, ended: undefined, decision: undefined, gone: false, response }
          asked.push(one)
          const keys = policies.map(() => wish.key)
          const costs = policies.map(() => wish.cost)
          const places = policies.map((_, place) => place)
          const patience = { clock: node.clock, timeout: 1_000 }
          const holding = new DelayedRequest(undefined, response as unknown as Answering, () => undefined, patience)
          const gone = new AbortController()
          response.once('gone', () => gone.abort())
          Promise.resolve(adapterOf(node).decideAsync(keys, costs, places, places.length, undefined, holding))
            // Adapters wait in the same way for decisions with a pace.
            .then((decision) => (decision.allowed ? node.waitFor(decision, gone.signal) : decision))
            .then(
              (decision) => {
                one.ended = it.world.time
                one.decision = decision
              },
              () => {
                one.ended = it.world.time
                one.gone = true
              },
            )
          if (wish.leaveAfter !== undefined)
            it.world.setTimer(() => {
              response.destroyed = true
              response.emit('close')
              response.emit('gone')
            }, wish.leaveAfter)
        }
        await it.world.run(4_000)
        expect(node.waiting).toBe(0)
        expect(node.clock.outstanding).toBeLessThanOrEqual(1)

        const counted = new Map<string, number>()
        const windows = new Map<string, number>()
        for (const { wish, at, ended, decision, gone, response } of asked) {
          expect(response.listenerCount('close')).toBe(0)
          expect(ended, 'ended').toBeDefined()
          // No request takes longer than the longest of the delays. A client that leaves ends its wait.
          expect((ended as number) - at).toBeLessThanOrEqual(Math.max(most, slows ? 450 : 0, paces ? 400 : 0) + 2)
          if (gone) expect(wish.leaveAfter).toBeDefined()
          if (gone) continue
          expect(decision?.parts).toHaveLength(policies.length)
          expect(decision?.delayMs).toBe(0)
          if (decision?.allowed !== true) continue
          expect(decision.parts.map(({ cost }) => cost)).toEqual(policies.map(() => wish.cost))
          counted.set(wish.key, (counted.get(wish.key) ?? 0) + wish.cost)
          if (algorithm.id !== 'fixed-window' || slows || paces) continue
          const window = `${wish.key} ${Math.floor((ended as number) / 500)}`
          windows.set(window, (windows.get(window) ?? 0) + wish.cost)
        }
        for (const units of windows.values()) expect(units).toBeLessThanOrEqual(4)
        // Only allowed requests are counted.
        for (const key of ['a', 'b']) expect(node.peek(key).parts.at(-1)?.remaining).toBe(60 - (counted.get(key) ?? 0))
        await it.close()
      },
    ),
    { numRuns: 120 },
  )
})
