import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { memoryStore } from '../../src/index.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { systemClock } from '../../src/time/clock.ts'

const MINUTE = { limit: 2, interval: '1m' } as const

afterEach(() => {
  vi.useRealTimers()
})

test('monotonic time goes on from where it was, whoever tells it', () => {
  const start = systemClock.monotonic()
  vi.useFakeTimers()
  const faked = systemClock.monotonic()
  expect(faked - start).toBeGreaterThanOrEqual(0)
  vi.advanceTimersByTime(10_000_000)
  expect(systemClock.monotonic()).toBeCloseTo(faked + 10_000_000, 3)
  vi.useRealTimers()
  const again = systemClock.monotonic()
  expect(again).toBeGreaterThanOrEqual(faked + 10_000_000)
  vi.useFakeTimers()
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(again)
  expect(systemClock.monotonic()).toBe(systemClock.monotonic())
})

test('time that is advanced before anybody looks at the clock counts', () => {
  for (let fake = 1; fake <= 2; fake++) {
    const start = systemClock.monotonic()
    vi.useFakeTimers()
    vi.advanceTimersByTime(10_000_000)
    expect(systemClock.monotonic() - start).toBeGreaterThanOrEqual(10_000_000)
    // The next fake is installed before the real clock is read.
    vi.useRealTimers()
  }
})

test('once a request has waited in this process, those that wait go while a test advances', async () => {
  const policies = [{ limit: 10, interval: '1s', algorithm: leakyBucket(), coordination: 'local' }] as const
  await createThrottler({ policies }).acquire('first')
  vi.useFakeTimers()
  const throttler = createThrottler({ policies })
  let gone = 0
  for (let i = 0; i < 5; i++) void throttler.schedule('a', () => gone++)
  await vi.advanceTimersByTimeAsync(0)
  expect(gone).toBe(1)
  await vi.advanceTimersByTimeAsync(250)
  expect(gone).toBe(3)
})

describe.each([
  ['made before the timers are faked', false],
  ['made after', true],
] as const)('a throttler that is %s', (_, after) => {
  const made = (options: Parameters<typeof createThrottler>[0]) => {
    if (after) vi.useFakeTimers()
    const throttler = createThrottler(options)
    throttler.check('before')
    if (!after) vi.useFakeTimers()
    return throttler
  }

  test.each([
    ['fixed windows', {}],
    ['sliding windows', { algorithm: slidingWindow() }],
    ['logs', { algorithm: slidingLog() }],
    ['buckets', { algorithm: tokenBucket() }],
  ])('lets in again after an interval: %s', (_name, options) => {
    const throttler = made({ policies: [{ ...MINUTE, ...options, coordination: 'local' }] })
    for (let turn = 0; turn < 3; turn++) {
      expect([1, 2, 3].map(() => throttler.check('a').allowed)).toEqual([true, true, false])
      // The last sub-window of a sliding window expires a sub-window later.
      vi.advanceTimersByTime(62_000)
    }
  })

  test('ends a cooldown and a block by hand', () => {
    const throttler = made({ policies: [{ ...MINUTE, cooldown: '1h', coordination: 'local' }] })
    for (let i = 0; i < 3; i++) throttler.check('a')
    throttler.block('b', '2h')
    vi.advanceTimersByTime(3_599_000)
    expect([throttler.check('a').reason, throttler.check('b').reason]).toEqual(['cooldown', 'blocked'])
    vi.advanceTimersByTime(1_000)
    expect([throttler.check('a').reason, throttler.check('b').reason]).toEqual(['ok', 'blocked'])
    vi.advanceTimersByTime(3_600_000)
    expect(throttler.check('b').reason).toBe('ok')
  })

  test('lets those go on that wait, and frees slots', async () => {
    const throttler = made({ policies: [{ ...MINUTE, coordination: 'local' }], queue: { maxWait: '2m' } })
    for (let i = 0; i < 2; i++) throttler.check('a')
    const waited = throttler.acquire('a')
    await vi.advanceTimersByTimeAsync(60_000)
    expect((await waited).allowed).toBe(true)
    const slots = createThrottler({ policies: [{ limit: 1, algorithm: concurrency({ maxDuration: '1m' }), coordination: 'local' }] })
    slots.check('a')
    expect(slots.check('a').allowed).toBe(false)
    await vi.advanceTimersByTimeAsync(70_000)
    expect(slots.check('a').allowed).toBe(true)
  })

  test('exchanges counts with others of its store, and closes', async () => {
    const store = memoryStore()
    const one = made({ policies: [MINUTE], store })
    const other = createThrottler({ policies: [MINUTE], store })
    other.check('before')
    await vi.advanceTimersByTimeAsync(1_000)
    for (let i = 0; i < 2; i++) one.check('a')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(other.check('a').allowed).toBe(false)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(other.check('a').allowed).toBe(true)
    const closed = Promise.all([one.close(), other.close()])
    await vi.advanceTimersByTimeAsync(5_000)
    await closed
  })
})

describe('a day that is set', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: new Date('2027-03-01T10:00:30Z') })
  })

  test('is the day of the intervals', () => {
    const throttler = createThrottler({ policies: [{ ...MINUTE, coordination: 'local' }] })
    expect(throttler.check('a').resetAfterMs).toBeCloseTo(30_000, -1)
    expect(throttler.check('a').remaining).toBe(0)
    vi.advanceTimersByTime(30_001)
    expect(throttler.check('a')).toMatchObject({ allowed: true, remaining: 1 })
  })
})
