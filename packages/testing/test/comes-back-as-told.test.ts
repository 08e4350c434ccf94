import {
  type Algorithm,
  type Coordination,
  createThrottler,
  type Decision,
  fixedWindow,
  memoryStore,
  type PolicyOptions,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { expect, test } from 'vitest'
import { manualClock, SeededRandom } from '../src/index.ts'

/*
 * Pairs that are tested with `memoryStore()`, whose clock shows whole milliseconds, like `Date.now`. Intervals and sub-windows are
 * not whole milliseconds, so that syncs fall between two of them. Times are those of today, at which the smallest fraction of a
 * millisecond is 2^-12.
 */

const CELLS: readonly (readonly [name: string, coordination: Coordination, algorithm: Algorithm])[] = [
  ['fixedWindow()', 'local', fixedWindow()],
  ['fixedWindow()', 'background', fixedWindow()],
  ['fixedWindow()', 'periodic', fixedWindow()],
  ['fixedWindow()', 'leased', fixedWindow()],
  ['fixedWindow()', 'central', fixedWindow()],
  ["fixedWindow({ start: 'first-request' })", 'local', fixedWindow({ start: 'first-request' })],
  ["fixedWindow({ start: 'first-request' })", 'central', fixedWindow({ start: 'first-request' })],
  ['slidingWindow({ subWindows: 7 })', 'local', slidingWindow({ subWindows: 7 })],
  ['slidingWindow({ subWindows: 7 })', 'background', slidingWindow({ subWindows: 7 })],
  ['slidingWindow({ subWindows: 7 })', 'central', slidingWindow({ subWindows: 7 })],
  ['slidingCounter()', 'local', slidingCounter()],
  ['slidingCounter()', 'periodic', slidingCounter()],
  ['slidingCounter()', 'central', slidingCounter()],
  ['slidingLog()', 'local', slidingLog()],
  ['slidingLog()', 'central', slidingLog()],
  ['tokenBucket()', 'local', tokenBucket()],
  ['tokenBucket()', 'background', tokenBucket()],
  ['tokenBucket()', 'central', tokenBucket()],
  ['tokenBucket({ warmUp })', 'local', tokenBucket({ warmUp: 700 })],
  ['tokenBucket({ warmUp })', 'central', tokenBucket({ warmUp: 700 })],
]

const RUNS = 10
const STEPS = 30

/** Rejects a client, waits for exactly `retryAfterMs` of the process's time without other traffic, and sends the request again. */
async function comesBack(coordination: Coordination, algorithm: Algorithm, seed: string, more: 'nothing' | 'cooldown' | 'a local policy') {
  let rejected = 0
  for (let run = 0; run < RUNS; run++) {
    const random = new SeededRandom(`${seed}/${run}`)
    const oneOf = <T>(choices: readonly T[]): T => choices[random.below(choices.length)] as T
    const interval = oneOf([100, 1000 / 3, 1000, 7777, 60_000])
    const limit = oneOf([1, 2, 3, 10, 100])
    const clock = manualClock({ offset: 8e11 + random.below(interval), origin: random.next() * 1e6 })
    const policies: PolicyOptions[] = [
      { name: 'p', algorithm, coordination, limit, interval, cooldown: more === 'cooldown' ? oneOf([1, interval / 3, 2 * interval]) : 0 },
    ]
    if (more === 'a local policy') policies.push({ name: 'q', coordination: 'local', limit, interval: interval / 2 })
    const store = coordination === 'local' ? {} : { store: memoryStore() }
    const throttler = createThrottler({ clock, policies, random: () => random.next(), ...store }).start()
    await adapterOf(throttler).inspected.coordinator?.loading
    const check = async (cost: number): Promise<Decision> => {
      let settled = false
      const decision = throttler.checkAsync('key', cost).finally(() => (settled = true))
      await clock.time.settled()
      while (!settled) await clock.advance(0.05)
      return decision
    }
    await clock.advance(2_500)
    for (let step = 0; step < STEPS; step++) {
      await clock.advance((random.next() * interval) / limit)
      const cost = oneOf([1, 1, Math.ceil(limit / 3), limit])
      const { allowed, reason, retryAfterMs } = await check(cost)
      if (allowed) continue
      rejected++
      await clock.advance(retryAfterMs)
      const then = await check(cost)
      const what = `run ${run}, limit ${limit}, interval ${interval}: ${reason} for ${retryAfterMs} ms, then ${then.reason} for ${then.retryAfterMs}`
      expect(then.allowed, what).toBe(true)
    }
    let closed = false
    void throttler.close().finally(() => (closed = true))
    while (!closed) await clock.advance(50)
  }
  expect(rejected).toBeGreaterThan(20)
}

test.each(CELLS)('%s, %s: a client that waits for retryAfterMs is allowed', (name, coordination, algorithm) =>
  comesBack(coordination, algorithm, `${name}/${coordination}`, 'nothing'),
)

test.each(CELLS)('%s, %s: a client that waits for a cooldown is allowed', (name, coordination, algorithm) =>
  comesBack(coordination, algorithm, `${name}/${coordination}`, 'cooldown'),
)

test.each(CELLS.filter(([, coordination]) => coordination === 'central'))(
  '%s, %s: a client that a local policy rejects too is allowed when both have room',
  (name, coordination, algorithm) => comesBack(coordination, algorithm, `${name}/${coordination}`, 'a local policy'),
)
