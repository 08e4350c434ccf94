import { channel } from 'node:diagnostics_channel'
import { expect, test } from 'vitest'
import type { DiagnosticsMessage, ThrottlerEvents } from '../../src/report/events.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene } from '../support/nodes.ts'

test('rejections are reported as one sum per policy and second', async () => {
  const { world, node } = scene()
  const throttler = node({ name: 'user', limit: 10, interval: '1m' }, { alone: true })
  const heard: ThrottlerEvents['rejections'][] = []
  offer(throttler, 'a', 15)
  throttler.on('rejections', (event) => heard.push(event))
  await world.run(1)
  offer(throttler, 'a', 400)
  offer(throttler, 'b', 12)
  await world.run(500)
  expect(heard).toEqual([])
  await world.run(600)
  expect(heard).toEqual([
    { policy: 'user', rejected: 402, durationMs: expect.any(Number), reasons: [{ reason: 'limit', source: 'local', count: 402 }] },
  ])
  expect(heard[0]?.durationMs).toBeGreaterThanOrEqual(1_000)
  await world.run(5_000)
  expect(heard).toHaveLength(1)
})

test('a subscriber of the diagnostics channel hears the same, with the id of the node', async () => {
  const { world, node } = scene()
  const throttler = node({ name: 'user', limit: 1, interval: '1m' })
  const heard: unknown[] = []
  const hear = (message: unknown): void => {
    heard.push(message)
  }
  const throttled = channel('weir:rejections')
  const blocked = channel('weir:blocked')
  throttled.subscribe(hear)
  blocked.subscribe(hear)
  try {
    throttler.start()
    await world.run(10)
    offer(throttler, 'a', 3)
    throttler.block('b', '1m')
    await world.run(2_500)
  } finally {
    throttled.unsubscribe(hear)
    blocked.unsubscribe(hear)
  }
  expect(heard).toContainEqual({ node: throttler.nodeId, policy: 'user', key: 'b', durationMs: 60_000, cause: 'manual' })
  const sums = heard.filter((message): message is DiagnosticsMessage<'rejections'> => 'rejected' in (message as object))
  expect(sums.map(({ node: id, rejected }) => [id, rejected])).toEqual([[throttler.nodeId, 2]])
})

test('nobody is woken where nobody listens', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 1, interval: '1h' }, { alone: true })
  const off = throttler.on('rejections', () => {})
  offer(throttler, 'a', 3)
  off()
  await world.run(10)
  const woken: number[] = []
  const setTimeout = adapterOf(throttler).clock.setTimeout.bind(adapterOf(throttler).clock)
  adapterOf(throttler).clock.setTimeout = (callback, delay) => {
    woken.push(delay)
    return setTimeout(callback, delay)
  }
  await world.run(60_000)
  expect(woken.length).toBeLessThanOrEqual(1)
})
