import { readFileSync } from 'node:fs'
import {
  type Algorithm,
  createThrottler,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'
import { describe, expect, test } from 'vitest'
import { manualClock } from '../src/index.ts'

/** One policy, and a clock that starts at 0. */
function limiter(algorithm: Algorithm, limit: number, interval: number) {
  const clock = manualClock()
  const rule = (units: number) => ({ algorithm, limit: units, interval, coordination: 'local' as const })
  const throttler = createThrottler({ policies: [rule(limit)], clock })
  const began = clock.monotonic()
  return {
    throttler,
    to: (at: number) => clock.advance(began + at - clock.monotonic()),
    pass: (milliseconds: number) => clock.advance(milliseconds),
    check: (cost = 1) => throttler.check('key', cost),
    peek: (cost = 1) => throttler.peek('key', cost),
    /** The number of requests that are allowed if this many arrive at once. */
    of: (requests: number) => Array.from({ length: requests }, () => throttler.check('key').allowed).filter(Boolean).length,
    limitTo: (units: number) => throttler.update([rule(units)]),
    /** Waits until a request is allowed, which then takes `units`. By Guava's rule the next request pays for them. Returns seconds. */
    acquire: async (units = 1) => {
      const first = throttler.check('key')
      await clock.advance(first.retryAfterMs)
      const decision = first.allowed ? first : throttler.check('key')
      if (units > 1) throttler.charge(decision, units - 1)
      return first.retryAfterMs / 1000
    },
  }
}

describe('published tables', () => {
  // Source: throttled/throttled, rate_test.go, and brandur/redis-cell. Columns: seconds, units, allowed, remaining, reset and retry
  // in seconds.
  test('GCRA', async () => {
    const { to, check, peek } = limiter(tokenBucket(), 5, 5000)
    const tell = ({ allowed, remaining, resetAfterMs, retryAfterMs }: ReturnType<typeof check>) =>
      allowed ? [remaining, resetAfterMs / 1000] : [remaining, 'rejected', retryAfterMs / 1000]
    expect(tell(check(6))).toEqual([5, 'rejected', Number.POSITIVE_INFINITY])
    expect([1, 2, 3, 4, 5, 6].map(() => tell(check()))).toEqual([
      [4, 1],
      [3, 2],
      [2, 3],
      [1, 4],
      [0, 5],
      [0, 'rejected', 1],
    ])
    const rows = [
      [3.0, 2, 3],
      [3.1, 1, 3.9],
      [4.0, 1, 4],
      [8.0, 4, 1],
      [9.5, 4, 1],
    ] as const
    for (const [at, remaining, reset] of rows) {
      await to(at * 1000)
      const decision = check()
      expect([at, Math.floor(decision.remaining), decision.resetAfterMs / 1000]).toEqual([at, remaining, reset])
    }
    expect(peek(1e-9).resetAfterMs).toBe(1000)
    expect(tell(check(2))).toEqual([2, 3])
    expect(tell(check(5))).toEqual([2, 'rejected', 3])
  })

  // Source: golang/time, rate_test.go, 10 a second with a burst of 3. Columns: tenths of a second, units, allowed.
  test.each([
    [
      'on',
      [
        [0, 2, 1],
        [0, 2, 0],
        [0, 1, 1],
        [0, 1, 0],
        [1, 4, 0],
        [2, 1, 1],
        [3, 1, 1],
        [4, 1, 1],
        [4, 1, 1],
        [4, 1, 0],
        [4, 1, 0],
        [9, 3, 1],
        [9, 1, 0],
      ],
    ],
    [
      'back',
      [
        [1, 1, 1],
        [0, 1, 1],
        [0, 1, 1],
        [0, 1, 0],
        [0, 1, 0],
        [1, 1, 1],
        [1, 1, 0],
        [1, 1, 0],
        [2, 1, 1],
        [2, 1, 0],
        [2, 1, 0],
      ],
    ],
  ])('token bucket by a clock that goes %s', (_, rows) => {
    const step = tokenBucket({ burst: 3 }).step
    const state: number[] = []
    const parameters = step?.parameters({ interval: 1000 } as never) ?? []
    for (const [at = 0, units = 0, allowed] of rows) {
      expect([at, units, step?.take(state, 1e12 + at * 100, units, 10, parameters).allowed]).toEqual([at, units, allowed === 1])
    }
  })

  test('token bucket, reserved: units that may wait', async () => {
    const { to, check } = limiter(leakyBucket({ burst: 100, immediate: 1 }), 10, 1000)
    expect([check(2).delayMs, check(2).delayMs]).toEqual([0, 200])
    await to(300)
    expect(check(2).delayMs).toBe(100)
  })

  // The same source. Go subtracts later reservations from cancelled units, so there the last request waits until t5.
  test('token bucket, reserved and cancelled: what is given back is free for whoever comes', async () => {
    const { throttler, to, check } = limiter(leakyBucket({ burst: 100, immediate: 3 }), 10, 1000)
    const given = [check(4), check(3), check(1), check(1)] as const
    expect(given.map(({ delayMs: delay }) => delay)).toEqual([0, 300, 400, 500])
    await to(100)
    throttler.refund(given[3])
    throttler.refund(given[1])
    // The delay starts at t1.
    expect(check(3).delayMs).toBe(300)
  })

  test('token bucket, unused time saved, the next request pays', async () => {
    const five = limiter(tokenBucket({ burst: 6 }), 5, 1000)
    five.check(5)
    expect([await five.acquire(), await five.acquire(), await five.acquire()]).toEqual([0, 0.2, 0.2])
    await five.pass(2000)
    expect(five.of(10)).toBe(6)
    const one = limiter(tokenBucket({ burst: 1 }), 1, 1000)
    const waits: number[] = []
    for (const units of [1, 1, 2, 4, 8, 1]) waits.push(await one.acquire(units))
    expect(waits).toEqual([0, 1, 1, 2, 4, 8])
  })

  test('another limit leaves the units, not the time that they were to take', async () => {
    const one = limiter(tokenBucket({ burst: 1 }), 1, 1000)
    const waits = [await one.acquire(), await one.acquire()]
    one.limitTo(2)
    for (const units of [1, 2, 4, 1]) waits.push(await one.acquire(units))
    // Guava does not adjust the time that is already reserved: there the third one waits for a second.
    expect(waits).toEqual([0, 1, 0.5, 0.5, 1, 2])
  })

  describe('warm-up', () => {
    const tell = async (warm: ReturnType<typeof limiter>, times: number) => {
      const waits: string[] = []
      for (let i = 0; i < times; i++) waits.push((await warm.acquire()).toFixed(2))
      return waits.join(' ')
    }
    const FIRST = '0.00 1.38 1.13 0.88 0.63 0.50 0.50 0.50'

    test('2 a second, 4 s, and again when it has rested for as long', async () => {
      const warm = limiter(tokenBucket({ burst: 1, warmUp: '4s' }), 2, 1000)
      expect(await tell(warm, 8)).toBe(FIRST)
      await warm.pass(4500)
      expect(await tell(warm, 8)).toBe(FIRST)
      await warm.pass(2500)
      expect(await tell(warm, 8)).toBe('0.00 0.50 0.50 0.50 0.50 0.50 0.50 0.50')
    })

    test('the limit is doubled half-way', async () => {
      const warm = limiter(tokenBucket({ burst: 1, warmUp: '4s' }), 2, 1000)
      expect(await tell(warm, 3)).toBe('0.00 1.38 1.13')
      warm.limitTo(4)
      // Guava does not adjust the time that is already reserved: there the first one waits for 0.88 s.
      expect(await tell(warm, 5)).toBe('0.44 0.34 0.28 0.25 0.25')
      await warm.pass(4250)
      expect(await tell(warm, 11)).toBe('0.00 0.72 0.66 0.59 0.53 0.47 0.41 0.34 0.28 0.25 0.25')
    })

    test('a cold factor of 10', async () => {
      const warm = limiter(tokenBucket({ burst: 1, warmUp: { duration: '4s', coldFactor: 10 } }), 5, 1000)
      // Waits are rounded up to milliseconds, and then to hundredths of a second.
      for (const wait of [0, 1.75, 1.26, 0.76, 0.3, 0.2]) expect(await warm.acquire()).toBeCloseTo(wait, 1.8)
    })
  })

  // Source: alibaba/Sentinel, WarmUpController, 10 a second, warm in 10 s, three times as slow when cold. The line is the same as
  // Guava's.
  test('warm-up by count', async () => {
    const warm = limiter(tokenBucket({ burst: 1, warmUp: '10s' }), 10, 1000)
    const waits: number[] = []
    for (let i = 0; i < 110; i++) waits.push(await warm.acquire())
    const stored = (permits: number) => Math.max(0, permits - 50) * 0.004 + 1 / 10
    // 100 permits are stored, 50 of them slow: the first comes at 3.33 a second, and after 10 s the pace is 10 a second.
    for (let i = 0; i < 100; i++) {
      const between = i < 50 ? (stored(100 - i) + stored(99 - i)) / 2 : 1 / 10
      expect([i, Math.abs((waits[i + 1] as number) - between) < 0.002]).toEqual([i, true])
    }
    const slow = waits.slice(0, 51).reduce((sum, wait) => sum + wait, 0)
    expect(slow).toBeCloseTo(10, 1)
    expect(1 / stored(100)).toBeCloseTo(3.33, 2)
  })

  // Source: alibaba/Sentinel, ThrottlingControllerTest, 10 a second, no request waits for more than 500 ms.
  test('leaky bucket as a queue', () => {
    const { check } = limiter(leakyBucket({ burst: 5 }), 10, 1000)
    const decisions = Array.from({ length: 10 }, () => check())
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(6)
    expect(decisions[5]?.delayMs).toBe(500)
  })

  // Source: nginx-tests, limit_req.t and limit_req_delay.t. Values are milliseconds, or rejected.
  test.each<[name: string, options: Parameters<typeof leakyBucket>[0], limit: number, interval: number, waits: (number | string)[]]>([
    ['burst=5', { burst: 5 }, 10, 1000, [0, 100, 200, 300, 400, 500, 'rejected']],
    ['burst=5 nodelay', { burst: 5, immediate: 5 }, 10, 1000, [0, 0, 0, 0, 0, 0, 'rejected']],
    ['burst=5 delay=2', { burst: 5, immediate: 2 }, 10, 1000, [0, 0, 0, 100, 200, 300, 'rejected']],
    ['30r/m burst=2 delay=1', { burst: 2, immediate: 1 }, 30, 60_000, [0, 0, 2000, 'rejected']],
  ])('limit_req: %s', (_, options, limit, interval, waits) => {
    const { check } = limiter(leakyBucket(options), limit, interval)
    const tell = () => {
      const { allowed, delayMs: delay } = check()
      return allowed ? delay : 'rejected'
    }
    expect(waits.map(tell)).toEqual(waits)
  })

  // Source: Cloudflare 2017, and an interview question: prev · (1 − t) + cur.
  test('two-window counter', async () => {
    const counter = limiter(slidingCounter(), 50, 60_000)
    await counter.to(1000)
    expect(counter.of(42)).toBe(42)
    await counter.to(75_000)
    expect(counter.of(18)).toBe(18)
    expect(counter.peek(0.5).allowed).toBe(true)
    expect(counter.peek(0.51).allowed).toBe(false)
    const other = limiter(slidingCounter(), 100, 60_000)
    expect(other.of(84)).toBe(84)
    await other.to(75_000)
    expect(other.of(36)).toBe(36)
    expect(other.check().allowed).toBe(true)
    expect(other.check().allowed).toBe(false)
  })

  test('fixed windows from the first request: twice the limit around a boundary', async () => {
    const window = limiter(fixedWindow({ start: 'first-request' }), 10, 60_000)
    await window.to(30_000)
    expect(window.of(1)).toBe(1)
    await window.to(89_999)
    expect(window.of(20)).toBe(9)
    expect(window.peek().retryAfterMs).toBe(1)
    await window.to(90_000)
    expect(window.of(20)).toBe(10)
  })

  // Source: Throttling Solutions.
  test("the article's own cases", async () => {
    const minute = 60_000
    // One flood is at 0:05 to 0:10 and another at 1:00 to 1:05. Six sub-windows of 10 s allow both, but Weir's windows release more
    // slowly.
    for (const [algorithm, second] of [
      [slidingLog(), 0],
      [slidingWindow({ subWindows: 6 }), 0],
      [fixedWindow(), 100],
    ] as const) {
      const flood = limiter(algorithm, 100, minute)
      await flood.to(5000)
      expect(flood.of(300)).toBe(100)
      await flood.to(60_000)
      expect(flood.of(300)).toBe(second)
    }
    // A leaky bucket with a flood at its start allows nearly twice the limit in one interval.
    const leaky = limiter(leakyBucket(), 60, minute)
    let allowed = 0
    for (let second = 0; second < 60; second++) {
      await leaky.to(second * 1000)
      allowed += leaky.of(60)
    }
    expect(allowed).toBe(119)
    // The key is idle, then 60 requests come at once. A token bucket allows all of them, a leaky bucket one a second.
    expect(limiter(tokenBucket(), 60, minute).of(60)).toBe(60)
    const queue = limiter(leakyBucket(), 60, minute)
    const delays = Array.from({ length: 60 }, () => queue.check().delayMs)
    expect(delays).toEqual(Array.from({ length: 60 }, (_, place) => place * 1000))
  })
})

interface RateTable {
  readonly limit: number
  readonly burst: number
  /** Microseconds, units, 1 if allowed, and the microseconds that a reservation of the units waits in another limiter. */
  readonly rows: readonly (readonly [number, number, number, number])[]
}

interface WarmUpTable {
  readonly limit: number
  readonly warmUp: number
  readonly coldFactor: number
  /** Microseconds before the request, permits, and the microseconds that it waits. */
  readonly rows: readonly (readonly [number, number, number])[]
}

function table<T>(name: string): readonly T[] {
  return JSON.parse(readFileSync(new URL(`../oracles/${name}.json`, import.meta.url), 'utf8'))
}

/** The step of an algorithm, with one key and its interval of a second. */
function keyOf({ step }: Algorithm, limit: number) {
  if (step === undefined) throw new Error('There is no step.')
  const state: number[] = []
  const parameters = step.parameters({ interval: 1000 } as never)
  return {
    take: (now: number, units: number) => step.take(state, now, units, limit, parameters),
    add: (now: number, units: number) => step.add(state, now, units, limit, parameters),
  }
}

describe('long random tables of real programs', () => {
  test.each(table<RateTable>('rate'))('golang.org/x/time/rate: $limit a second, burst $burst', ({ limit, burst, rows }) => {
    const bucket = keyOf(tokenBucket({ burst }), limit)
    const waiting = keyOf(leakyBucket({ burst: 1e6, immediate: burst - 1 }), limit)
    expect(rows.length).toBe(400)
    for (const [place, [at, units, allowed, wait]] of rows.entries()) {
      expect([place, bucket.take(at / 1000, units).allowed]).toEqual([place, allowed === 1])
      expect(Math.abs(waiting.take(at / 1000, units).delayMs - wait / 1000), `wait of row ${place}`).toBeLessThan(0.01)
    }
  })

  test.each(table<WarmUpTable>('warm-up'))(
    'Guava: $limit a second, warm in $warmUp ms, cold factor $coldFactor',
    ({ limit, warmUp, coldFactor, rows }) => {
      const key = keyOf(tokenBucket({ burst: 1, warmUp: { duration: warmUp, coldFactor } }), limit)
      expect(rows.length).toBe(300)
      let now = 0
      for (const [place, [rest, permits, waited]] of rows.entries()) {
        now += rest / 1000
        const first = key.take(now, 1)
        now += first.retryAfterMs
        if (!first.allowed) expect(key.take(now, 1).allowed).toBe(true)
        if (permits > 1) key.add(now, permits - 1)
        // Guava counts whole microseconds.
        expect(Math.abs(first.retryAfterMs - waited / 1000), `wait of row ${place}`).toBeLessThan(0.002 * (place + 1))
      }
    },
  )
})
