import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { central } from '../support/central-queues.ts'
import type { Waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

/** Milliseconds after the one before. */
const after = (most: number) => fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: most }))

test('requests that want the same go in their order, whoever gives places back, and when', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        limit: fc.constantFrom(10, 100),
        burst: fc.constantFrom(0, 5),
        roundTrip: fc.constantFrom(2, 10, 40),
        between: fc.integer({ min: 0, max: 50 }),
        arrivals: fc.array(after(20), { minLength: 20, maxLength: 60 }),
        leave: fc.integer({ min: 0, max: 400 }),
        leaving: fc.array(after(30), { minLength: 10, maxLength: 40 }),
      }),
      async ({ limit, burst, roundTrip, between, arrivals, leave, leaving }) => {
        const it = await central(2, { limit, algorithm: leakyBucket({ burst }) }, roundTrip)
        const [queue, other] = it.queues as [Waiting, Waiting]
        const clients = leaving.map(() => new AbortController())
        for (const { signal } of clients) other.acquire('a', { timeout: '30s', signal })
        await it.world.run(between)
        for (const [i, time] of arrivals.entries()) {
          await it.world.run(time)
          queue.acquire('a', { name: String(i), timeout: '30s' })
        }
        await it.world.run(leave)
        for (const [i, time] of leaving.entries()) {
          await it.world.run(time)
          clients[i]?.abort()
        }
        await it.world.run(10_000)
        expect(queue.went).toEqual(arrivals.map((_, i) => String(i)))
        await it.close()
      },
    ),
    { numRuns: 60 },
  )
})
