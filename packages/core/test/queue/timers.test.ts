import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

const program = fileURLToPath(new URL('fixtures/waits.ts', import.meta.url))

test('a thousand keys that wait for one counter cost no more when one of them goes', async () => {
  const it = scene()
  const node = it.node({ ...LOCAL, key: 'all', limit: 1, interval: 100 })
  const queue = await waiting(it, node)
  offer(node, 'x', 1)
  for (let i = 0; i < 1_000; i++) queue.acquire(`key ${i}`)
  await it.world.settle()
  const set = node.clock.timersSet
  let peeks = 0
  const limiter = adapterOf(node).inspected.limiters[0] as { meter: { allows: (...all: never[]) => boolean } }
  const { allows } = limiter.meter
  limiter.meter.allows = (...all) => {
    peeks++
    return allows.apply(limiter.meter, all)
  }
  await it.world.run(1_000)
  expect(queue.went).toHaveLength(10)
  expect(peeks).toBeLessThan(60)
  expect(node.clock.timersSet - set).toBeLessThan(60)
  expect(node.clock.outstanding).toBeLessThanOrEqual(2)
  await it.close()
})

test('a process does not end before those have gone that wait, and ends then', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', 'tsx', program], { timeout: 25_000 })
  expect({ stdout, stderr }).toEqual({ stdout: 'a\nb\nc\nall\n', stderr: '' })
}, 30_000)
