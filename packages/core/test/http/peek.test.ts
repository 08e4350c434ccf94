import { describe, expect, test } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { ThrottleInput } from '../../src/http/adapter-options.ts'
import { createGuard } from '../../src/http/guard.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { type FakeRequest, fakeReader } from './fake-request.ts'
import { ManualTime } from './manual-time.ts'

const DAY = { limit: 2, interval: '1d', key: 'all', coordination: 'local' } as const

function start(options: object) {
  const clock = new ManualTime(0)
  const guard = createGuard({ clock, ...options } as unknown as ThrottleInput<FakeRequest, readonly [FakeRequest]>, fakeReader)
  const warnings: unknown[] = []
  guard.throttler.on('warning', ({ error }) => warnings.push(error.code))
  return { guard, warnings }
}

describe('guard.peek', () => {
  test.each([
    ['a fixed window', {}],
    ['a token bucket', { algorithm: tokenBucket() }],
    ['a leaky bucket', { algorithm: leakyBucket({ burst: 2, immediate: 2 }) }],
    ['slots', { algorithm: concurrency(), interval: undefined }],
  ])('agrees with the check that follows, and changes nothing: %s', async (_name, algorithm) => {
    const { guard } = start({ ...DAY, ...algorithm })
    for (let sent = 0; sent < 4; sent++) {
      const before = JSON.stringify(snapshot(guard.throttler))
      const peeked = await guard.peek({})
      await guard.peek({})
      expect(JSON.stringify(snapshot(guard.throttler))).toBe(before)
      const decision = await guard.check({})
      expect(peeked).toMatchObject({ allowed: decision?.allowed, reason: decision?.reason, retryAfterMs: decision?.retryAfterMs })
    }
  })

  test('starts no cooldown and calls neither onRejected nor handler', async () => {
    const calls: string[] = []
    const { guard } = start({ ...DAY, limit: 1, cooldown: '2d', onRejected: () => calls.push('onRejected') })
    await guard.check({})
    expect(await guard.peek({})).toMatchObject({ allowed: false })
    guard.throttler.reset('all')
    expect(await guard.check({})).toMatchObject({ allowed: true })
    expect(calls).toEqual([])
  })

  test('follows an update that comes while a function answers', async () => {
    let answer: ((key: string) => void) | undefined
    const { guard } = start({ ...DAY, key: () => new Promise<string>((resolve) => (answer = resolve)) })
    const peeked = guard.peek({})
    await Promise.resolve()
    guard.throttler.update([{ ...DAY, limit: 7 }])
    answer?.('all')
    expect(await peeked).toMatchObject({ limit: 7, remaining: 7 })
  })

  test('resolves with undefined for a request to which no policy applies', async () => {
    const { guard } = start({ ...DAY, match: () => false })
    expect(await guard.peek({})).toBeUndefined()
  })

  test('resolves with undefined and warns once if it can not decide, as check', async () => {
    const { guard, warnings } = start(DAY)
    await guard.throttler.close()
    expect(await guard.peek({})).toBeUndefined()
    expect(await guard.peek(undefined as never)).toBeUndefined()
    expect(warnings.length).toBeLessThanOrEqual(1)
  })
})
