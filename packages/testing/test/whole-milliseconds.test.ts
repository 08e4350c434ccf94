import {
  type Algorithm,
  type Coordination,
  createThrottler,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { expect, test } from 'vitest'
import { NodeClock, SeededRandom, simulatedStore, VirtualTime } from '../src/index.ts'

/**
 * The interval. Its parts and the pace of each limit are whole milliseconds. So each exact wait is one too, if requests come at
 * whole ones.
 */
const INTERVAL = 600
const LIMITS = [1, 2, 10]
const STEPS = 100

const CELLS: readonly (readonly [name: string, coordination: Coordination, algorithm: Algorithm])[] = [
  ['fixedWindow()', 'local', fixedWindow()],
  ['fixedWindow()', 'background', fixedWindow()],
  ['slidingWindow()', 'local', slidingWindow()],
  ['slidingWindow()', 'background', slidingWindow()],
  ['slidingCounter()', 'local', slidingCounter()],
  ['slidingCounter()', 'periodic', slidingCounter()],
  ['slidingLog()', 'local', slidingLog()],
  ['tokenBucket()', 'local', tokenBucket()],
  ['tokenBucket()', 'background', tokenBucket()],
  ['leakyBucket()', 'local', leakyBucket()],
]

test.each(CELLS)(
  '%s, %s: a rejected request fits after retryAfterMs, and not a millisecond before',
  async (name, coordination, algorithm) => {
    for (const limit of LIMITS) {
      const random = new SeededRandom(`${name}/${coordination}/${limit}`)
      const time = new VirtualTime()
      const clock = new NodeClock(time)
      const shared = coordination !== 'local'
      const store = simulatedStore({ time, random, network: { latency: () => 0.5 } })
      const policies = [{ algorithm, coordination, limit, interval: INTERVAL }]
      const throttler = createThrottler({ clock, policies, ...(shared && { store }) }).start()
      await adapterOf(throttler).inspected.coordinator?.loading
      if (shared) await store.opened()
      await time.runUntil(2_000)
      let rejected = 0
      for (let step = 0; step < STEPS; step++) {
        await time.runUntil(time.now + random.below(Math.ceil((2 * INTERVAL) / (limit * (1 + random.below(8))))))
        const decision = throttler.check('key')
        if (decision.allowed || random.next() < 0.5) continue
        rejected++
        const { retryAfterMs } = decision
        const what = `limit ${limit}, step ${step}, retryAfterMs ${retryAfterMs}`
        await time.runUntil(time.now + retryAfterMs - 1)
        expect(throttler.peek('key').allowed, `${what}, a millisecond before`).toBe(false)
        await time.runUntil(time.now + 1)
        expect(throttler.peek('key').allowed, what).toBe(true)
      }
      expect(rejected).toBeGreaterThan(5)
      const closed = throttler.close()
      await time.runUntil(time.now + 2_000)
      await closed
    }
  },
)
