import { expect, test } from 'vitest'
import { scene } from '../support/nodes.ts'

const POLICIES = [
  { name: 'requests', limit: 100, interval: '1h' },
  { name: 'tokens', limit: 10_000, interval: '1h' },
] as const

function listened() {
  const { world, node } = scene()
  const throttler = node([...POLICIES], { alone: true })
  const events: unknown[] = []
  const warnings: string[] = []
  throttler.on('reservationExpired', (event) => events.push(event))
  throttler.on('warning', ({ error }) => warnings.push(error.code))
  return { world, throttler, events, warnings }
}

test('each expired reservation emits an event for each of its policies, and the first one a warning', async () => {
  const { world, throttler, events, warnings } = listened()
  const first = throttler.reserve('a', { cost: { requests: 1, tokens: 900 }, ttl: '10s' })
  first.used({ tokens: 70 })
  throttler.reserve('b', { cost: { tokens: 500 }, ttl: '20s' })
  throttler.reserve('c', { cost: { tokens: 1 }, ttl: '10s' }).settle()
  await world.run(11_000)
  expect(events).toEqual([
    { policy: 'requests', key: 'a', reserved: 1, counted: 1 },
    { policy: 'tokens', key: 'a', reserved: 900, counted: 70 },
  ])
  await world.run(10_000)
  expect(events.slice(2)).toEqual([{ policy: 'tokens', key: 'b', reserved: 500, counted: 500 }])
  expect(warnings).toEqual(['WEIR_WARN_RESERVATION_EXPIRED'])
})

test('a close settles open reservations with an event and without a warning', async () => {
  const { throttler, events, warnings } = listened()
  throttler.reserve('a', { cost: { tokens: 900 }, ttl: '10s' })
  await throttler.close()
  expect(events).toEqual([{ policy: 'tokens', key: 'a', reserved: 900, counted: 900 }])
  expect(warnings).toEqual([])
})

test('a close with many different ttls takes no longer than with one', async () => {
  const time = async (ttlOf: (i: number) => number) => {
    const { throttler, events } = listened()
    for (let i = 0; i < 20_000; i++) throttler.reserve('a', { cost: { tokens: 1 }, ttl: ttlOf(i) })
    const begun = performance.now()
    await throttler.close()
    expect(events.length).toBe(10_000)
    return performance.now() - begun
  }
  await time(() => 300_000)
  expect(await time((i) => 300_000 + i)).toBeLessThan(1_000)
})
