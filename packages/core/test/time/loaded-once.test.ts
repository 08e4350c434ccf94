import fs from 'node:fs'
import process from 'node:process'
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest'
import { createGuard } from '../../src/http/guard.ts'
import { leakyBucket } from '../../src/index.ts'
import { fakeReader } from '../http/fake-request.ts'
import { scene } from '../support/nodes.ts'

// `loadCode` opens files first, to check if there are enough descriptors.
let opened: MockInstance<typeof fs.openSync>
const looks = (): number => opened.mock.calls.filter(([path]) => path === process.execPath).length

beforeEach(() => {
  opened = vi.spyOn(fs, 'openSync')
})
afterEach(() => {
  opened.mockRestore()
})

test('a guard that has held a request holds the next ones without looking for descriptors', async () => {
  const policy = { limit: 1_000, interval: '1s', coordination: 'local', key: 'all', algorithm: leakyBucket({ burst: 9 }) } as const
  const guard = createGuard<object, readonly [object]>(policy, fakeReader as never)
  const hold = async (): Promise<void> => {
    await Promise.all([guard.check({}), guard.check({}), guard.check({})])
  }
  await hold()
  await vi.waitFor(() => expect(looks()).toBeGreaterThan(0))
  await hold()
  opened.mockClear()
  await hold()
  expect(looks()).toBe(0)
  await guard.throttler.close()
})

test('nodes that have told of a small limit do so without looking for descriptors with each heartbeat', async () => {
  const { world, node, close } = scene()
  const told: string[] = []
  for (const one of Array.from({ length: 3 }, () => node({ limit: 2, interval: '1m' }))) {
    one.on('warning', ({ error }) => told.push(error.code))
    one.start()
  }
  await vi.waitFor(async () => {
    await world.run(500)
    expect(told).toContain('WEIR_WARN_SMALL_LIMIT')
  })
  opened.mockClear()
  await world.run(10_000)
  expect(looks()).toBe(0)
  await close()
})
