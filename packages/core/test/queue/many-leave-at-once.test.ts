import { expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/index.ts'
import { Schedule } from '../../src/queue/schedule.ts'
import { scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const MANY = 400

/** Events that end all requests that keep a pace. */
const ENDS = {
  'are aborted by one signal': {},
  'are rejected as the throttler closes': { onClose: 'reject' },
} as const

test.each(Object.keys(ENDS) as (keyof typeof ENDS)[])('many requests that %s do not move each other up', async (end) => {
  const here = scene()
  const policy = { limit: MANY, interval: '1m', algorithm: leakyBucket(), coordination: 'local' }
  const queue = { maxWait: '5m', maxWaitingPerKey: MANY, ...ENDS[end] } as const
  const node = here.node(policy as never, { alone: true, queue })
  node.start()
  await waiting(here, node)
  const controller = new AbortController()
  const all = Array.from({ length: MANY }, () => node.acquire('a', { signal: controller.signal }).catch(({ reason }) => reason))
  await expect.poll(() => node.waiting).toBe(MANY - 1)
  const moves = vi.spyOn(Schedule.prototype, 'set')
  if (end === 'are aborted by one signal') controller.abort()
  else void node.close()
  expect(node.waiting).toBe(0)
  // Each of them behind each other one would be 79,000.
  expect(moves.mock.calls.length).toBeLessThan(2 * MANY)
  moves.mockRestore()
  await Promise.all(all)
  if (end === 'are aborted by one signal') {
    // All that they took came back.
    expect(node.peek('a').remaining).toBe(MANY - 1)
    await node.close()
  }
})
