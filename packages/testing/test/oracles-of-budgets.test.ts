import { createThrottler, type PolicyOptions, tokenBucket } from '@weir/core'
import { describe, expect, test } from 'vitest'
import { manualClock } from '../src/index.ts'

const MINUTE = 60_000

/** One process, and a clock at the start of an interval. */
function budget<Name extends string>(policies: readonly PolicyOptions<unknown, Name>[]) {
  const clock = manualClock()
  const throttler = createThrottler({ policies: policies.map((policy) => ({ coordination: 'local' as const, ...policy })), clock })
  /** Units that a policy has left. */
  const left = (name: Name) => {
    const { limit, remaining } = throttler.peek('key', { cost: { [name]: 1 } as never })
    return Number.isFinite(limit) ? Math.floor(remaining) : limit
  }
  return { throttler, clock, left, pass: (milliseconds: number) => clock.advance(milliseconds) }
}

/** The number of calls that are allowed at once. */
function atOnce(reserve: () => { readonly allowed: boolean }): number {
  for (let calls = 0; ; calls++) if (!reserve().allowed) return calls
}

describe('published numbers of budgets', () => {
  // Source: Amazon Bedrock, "How tokens are counted". Input and the maximum of output are reserved when a call starts.
  test.each([
    [500, 1_000, 1_333],
    [500, 64_000, 31],
  ])('Bedrock, 2 million tokens per minute: %i in, %i at most out, %i calls at once', async (input, max, calls) => {
    const { throttler, pass } = budget([{ name: 'tokens', limit: 2_000_000, interval: MINUTE }])
    const reserve = () => throttler.reserve('key', { cost: { tokens: input + max } })
    expect(atOnce(reserve)).toBe(calls)
    await pass(MINUTE)
    expect(atOnce(reserve)).toBe(calls)
  })

  // The same source: an output token counts five times when the call ends, and tokens that are read from a cache don't count.
  test.each([
    { counted: 10, cacheReads: 0, output: 750, total: 3_760 },
    { counted: 2_005, cacheReads: 0, output: 200, total: 3_005 },
    { counted: 6, cacheReads: 5_000, output: 12, total: 66 },
  ])('Bedrock, settled: $counted input and cache writes, $output out, $total in all', ({ counted, cacheReads, output, total }) => {
    const { throttler, left } = budget([{ name: 'tokens', limit: 100_000, interval: MINUTE }])
    const call = throttler.reserve('key', { cost: { tokens: counted + cacheReads + 64_000 } })
    expect(left('tokens')).toBe(100_000 - counted - cacheReads - 64_000)
    call.settle({ tokens: counted + 5 * output })
    expect(left('tokens')).toBe(100_000 - total)
  })

  // Source: Azure OpenAI, quotas. The estimate of a call is its prompt and max_tokens, and a limit per minute applies to each second too.
  test('Azure OpenAI: 600 requests per minute reject more than 10 in a second, and tokens are counted by prompt and max_tokens', async () => {
    const { throttler, left, pass } = budget([
      { name: 'requests', limit: 600, interval: MINUTE, algorithm: tokenBucket({ burst: 10 }) },
      { name: 'tokens', limit: 240_000, interval: MINUTE },
    ])
    const reserve = () => throttler.reserve('key', { cost: { requests: 1, tokens: 200 + 800 } })
    expect(atOnce(reserve)).toBe(10)
    // The rejected call has reserved no tokens.
    expect(left('tokens')).toBe(230_000)
    for (let second = 1; second <= 5; second++) {
      await pass(1_000)
      expect(atOnce(reserve)).toBe(10)
    }
    expect(left('tokens')).toBe(180_000)
  })

  // Source: a public report of a race between check and charge.
  describe('the public race: five concurrent calls of 58, 80, 175, 175 and 175, and a limit of 100', () => {
    const CALLS = [58, 80, 175, 175, 175]
    const race = () => budget([{ name: 'tokens', limit: 100, interval: MINUTE }])

    test('exactly the one of 58 is allowed', async () => {
      const { throttler, left } = race()
      const receipts = await Promise.all(CALLS.map((tokens) => throttler.reserveAsync('key', { cost: { tokens } })))
      expect(receipts.map(({ allowed }) => allowed)).toEqual([true, false, false, false, false])
      expect(left('tokens')).toBe(42)
    })

    test('all of them are allowed, and use 663, if they are checked first and charged afterwards', () => {
      const { throttler, left } = race()
      const started = CALLS.filter(() => throttler.peek('key').allowed)
      for (const tokens of started) throttler.charge('key', { cost: { tokens } })
      expect(started.reduce((sum, tokens) => sum + tokens, 0)).toBe(663)
      expect(left('tokens')).toBe(0)
    })
  })

  // Source: Kuadrant, RFC 0021.
  describe('Kuadrant RFC 0021', () => {
    const LIMIT = 10_000
    const of = (interval: number) => budget([{ name: 'tokens', limit: LIMIT, interval, maxReservation: 0.5 * LIMIT }])

    test('a reservation is at most half of the limit, and 5,000 by default', () => {
      const { throttler, left } = of(MINUTE)
      const larger = throttler.reserve('key', { cost: { tokens: 5_001 } })
      expect(larger).toMatchObject({ allowed: false, isOpen: false, retryAfterMs: Number.POSITIVE_INFINITY })
      expect(left('tokens')).toBe(LIMIT)
      expect(throttler.reserve('key', { cost: { tokens: 5_000 } }).allowed).toBe(true)
      expect(left('tokens')).toBe(5_000)
    })

    test('it ends after its ttl, at most 60 s', async () => {
      const { throttler, left, pass } = of(10 * MINUTE)
      const [short, long] = [10_000, 60_000].map((ttl) => {
        return throttler.reserve('key', { cost: { tokens: 5_000 }, ttl, expire: 'refund' })
      })
      await pass(9_990)
      expect([short?.isOpen, long?.isOpen]).toEqual([true, true])
      await pass(20)
      expect([short?.isOpen, long?.isOpen, left('tokens')]).toEqual([false, true, 5_000])
      await pass(50_000)
      expect([long?.isOpen, left('tokens')]).toEqual([false, LIMIT])
    })

    test('its units end with its window, and change nothing in the next one', async () => {
      const { throttler, left, pass } = of(MINUTE)
      await pass(MINUTE / 2)
      const [one, other] = [1, 2].map(() => throttler.reserve('key', { cost: { tokens: 5_000 }, ttl: '60s' }))
      expect(left('tokens')).toBe(0)
      await pass(MINUTE / 2)
      expect(left('tokens')).toBe(LIMIT)
      one?.settle({ tokens: 1 })
      other?.cancel()
      expect(left('tokens')).toBe(LIMIT)
    })
  })
})
