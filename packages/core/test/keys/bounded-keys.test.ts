import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import { bounded, boundedOnce, copied, LONGEST_KEY } from '../../src/keys/key-text.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { anyKey, offer, scene } from '../support/nodes.ts'

const long = (end: string): string => `${'x'.repeat(100_000)}${end}`

describe('a key of more than 256 characters', () => {
  test('has a limit of its own, wherever it differs', () => {
    const throttler = scene().node({ limit: 3, interval: '1m' })
    const keys = [long('a'), long('b'), `a${long('')}`, `${'y'.repeat(256)}\ud800`, `${'y'.repeat(256)}\udc00`, `${'y'.repeat(256)}\ufffd`]
    for (const key of keys) expect(offer(throttler, key, 5)).toBe(3)
    expect(snapshot(throttler).policies[0]?.keys).toBe(keys.length)
  })

  test('is shown by its beginning and a hash, alike in decisions, events and snapshots', () => {
    const throttler = scene().node({ limit: 1, interval: '1m', cooldown: '1m' })
    const events: string[] = []
    throttler.on('blocked', ({ key }) => events.push(key))
    const { key } = throttler.check(long('a'))
    expect(key).toMatch(/^x{206}~sha256:[\w-]{43}$/)
    expect(throttler.check(long('a'))).toMatchObject({ allowed: false, key })
    expect(throttler.peek(long('a'))).toMatchObject({ allowed: false, key })
    expect(snapshot(throttler).blocked.map((block) => block.key)).toEqual([key])
    expect(events).toEqual([key])
  })

  test('can be blocked and unblocked as it is, and as it is shown', () => {
    const throttler = scene().node({ limit: 10, interval: '1m' })
    const { key } = throttler.check(long('a'))
    for (const name of [key, long('a')]) {
      throttler.block(name, '1m')
      expect(throttler.check(long('a'))).toMatchObject({ allowed: false, reason: 'blocked' })
      expect(throttler.peek(name).reason).toBe('blocked')
      throttler.unblock(name)
      expect(throttler.check(long('a')).allowed).toBe(true)
    }
  })

  test('gets its units back, also when the interval is over', async () => {
    const { world, node, store, close } = scene()
    const throttler = node({ limit: 10, interval: '1m' })
    throttler.start()
    await world.run(50)
    const decision = throttler.check(long('a'), 8)
    throttler.refund(decision, 5)
    expect(throttler.peek(long('a')).remaining).toBe(10 - 3)
    await close()
    expect(store.total(throttler.policies[0] as never, bounded(long('a')), 1_800_000_000_000)).toEqual({ taken: 8, given: 5 })
  })

  test('is the same key at several policies, in the form that adapters use, and where a request waits', async () => {
    const { world, node } = scene()
    const policies = [
      { name: 'a', limit: 3, interval: '1m' },
      { name: 'b', limit: 5, interval: '1m', coordination: 'leased' },
    ] as const
    const throttler = node(policies)
    throttler.start()
    await world.run(50)
    const key = long('a')
    const waiting = throttler.checkAsync(key)
    await world.run(20)
    expect((await waiting).allowed).toBe(true)
    expect(adapterOf(throttler).decideAsync([key, key], [1, 1])).toMatchObject({ allowed: true })
    const last = throttler.checkAsync(key)
    await world.run(20)
    expect((await last).allowed).toBe(true)
    const rejected = throttler.checkAsync(key)
    await world.run(20)
    expect(await rejected).toMatchObject({ allowed: false, key: bounded(key) })
    expect(snapshot(throttler).policies.map((policy) => policy.keys)).toEqual([1, 1])
  })

  test('a client that knows the form gains nothing by it', () => {
    const throttler = scene().node({ limit: 1, interval: '1m' })
    throttler.check(long('a'))
    expect(throttler.check(bounded(long('a'))).allowed).toBe(true)
  })
})

test('bounding leaves short keys alone and tells all others apart', () => {
  const seen = new Map<string, string>()
  fc.assert(
    fc.property(fc.oneof(anyKey, fc.string({ unit: 'binary', minLength: 250, maxLength: 300 })), (key) => {
      const form = bounded(key)
      expect(form.length).toBeLessThanOrEqual(LONGEST_KEY + 1)
      if (key.length <= LONGEST_KEY) expect(form).toBe(key)
      expect(seen.get(form) ?? key).toBe(key)
      seen.set(form, key)
      expect(boundedOnce(form)).toBe(form)
    }),
    { numRuns: 2_000 },
  )
})

test('a copy is the same text', () => {
  fc.assert(
    fc.property(fc.oneof(anyKey, fc.string({ unit: 'binary', maxLength: 1_500 })), (text) => {
      expect(copied(text)).toBe(text)
      expect(copied(`${text}${text}`.slice(text.length))).toBe(text)
    }),
    { numRuns: 500 },
  )
})
