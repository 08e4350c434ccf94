import { describe, expect, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { started } from '../support/central.ts'
import { central } from '../support/central-queues.ts'
import { type Node, offer, type Scene, scene } from '../support/nodes.ts'
import { type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

const STRICT_PACE = { name: 'pace', limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 0 }), coordination: 'central' } as const

const LONG_WINDOW = { name: 'window', limit: 1_000, interval: 60_000, coordination: 'central' } as const

type Policy = Partial<PolicyOptions<never>>

const LONG: Policy = { name: 'long', limit: 300, interval: 4_000 }

const PACE: Policy = { name: 'pace', limit: 100, interval: 1_000, algorithm: leakyBucket() }

/** Closes while code may still be loading, which takes real time. */
async function close(here: Scene, node: Node): Promise<void> {
  let closed = false
  const closing = node.close().finally(() => {
    closed = true
  })
  while (!closed) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(5)
  }
  await closing
}

describe('closing', () => {
  test('lets those go that may within its time, and rejects the others at once', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1, interval: 400 }, { closeTimeout: 1_000 })
    const queue = await waiting(it, node)
    offer(node, 'a', 1)
    offer(node, 'b', 1)
    node.block('b', '10s')
    const all = [0, 1, 2, 3].map(() => queue.acquire('a'))
    const b = queue.acquire('b')
    await it.world.run(10)
    const closing = node.close()
    await it.world.settle()
    expect(b.failure).toBe('closed')
    const late = queue.acquire('c')
    await it.world.run(2_000)
    await closing
    expect(late.failure).toBe('closed')
    expect(all.map(({ failure, at }) => failure ?? at)).toEqual([400, 800, 'closed', 'closed'])
    expect(node.clock.outstanding).toBe(0)
    expect(queue.acquire('d').failure).toBeUndefined()
    await it.world.settle()
    expect(queue.ended.at(-1)?.failure).toBe('closed')
  })

  test.each([
    ['lets those go that get a slot in time', 'finish', [undefined, undefined, 'closed'], [100, 500]],
    ['rejects at once who waits for a slot, by option', 'reject', ['closed', 'closed', 'closed'], [0]],
  ] as const)('%s', async (_, onClose, failures, ends) => {
    const it = scene()
    const slots = { limit: 1, interval: undefined, algorithm: concurrency(), coordination: 'local' } as never
    const node = it.node(slots, { queue: { onClose }, closeTimeout: 500 })
    const queue = await waiting(it, node)
    const running = node.check('a')
    const all = [0, 1, 2].map(() => queue.acquire('a'))
    await it.world.run(10)
    const begun = it.world.time
    let closed = Number.NaN
    const closing = node.close().then(() => (closed = it.world.time - begun))
    await it.world.run(100)
    node.release(running)
    await it.world.run(100)
    if (all[0]?.decision !== undefined) node.release(all[0].decision)
    await it.world.run(1_000)
    await closing
    expect(all.map(({ failure }) => failure)).toEqual(failures)
    expect(closed).toBeLessThanOrEqual((ends.at(-1) as number) + 10)
    expect(node.clock.outstanding).toBe(0)
  })

  test('rejects all at once, by option', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1, interval: 400 }, { queue: { onClose: 'reject' } })
    const queue = await waiting(it, node)
    offer(node, 'a', 1)
    const all = [0, 1].map(() => queue.acquire('a'))
    await it.world.settle()
    const closing = it.close()
    await it.world.settle()
    expect(all.map(({ failure }) => failure)).toEqual(['closed', 'closed'])
    await closing
    expect(node.clock.outstanding).toBe(0)
  })
})

test('who closes and rejects all waits for none of those that were being asked for', async () => {
  const it = scene()
  it.store.roundTrip = 40
  const policy = { limit: 1, interval: 10_000, coordination: 'central', algorithm: leakyBucket({ burst: 0 }) } as const
  const node = it.node(policy, { queue: { onClose: 'reject' } })
  await started(it, node)
  const queue = await waiting(it, node)
  await it.world.runTo(20_000)
  for (let i = 0; i < 3; i++) queue.acquire('a', { timeout: '30s' })
  await it.world.run(50)
  const begun = it.world.time
  let closed: number | undefined
  void node.close().then(() => (closed = it.world.time))
  await it.world.run(30_000)
  expect(closed).toBeLessThanOrEqual(begun + 100)
  expect(queue.ended.map(({ failure }) => failure)).toEqual([undefined, 'closed', 'closed'])
})

test.each(['finish', 'reject'] as const)('a throttler closes in time, whoever waits again at that moment: %s', async (onClose) => {
  for (let when = 20; when < 400; when += 13) {
    const options = { queue: { onClose }, closeTimeout: 500 } as const
    const it = await central(
      1,
      [
        { ...STRICT_PACE, limit: 400 },
        { ...LONG_WINDOW, limit: 20, interval: 100, failMode: 'closed' },
      ],
      20,
      options,
    )
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 200; i++) queue.acquire('a')
    await it.world.run(when)
    if (when % 2 === 0) it.store.unreadable.add('a')
    const begun = it.world.time
    let closed = Number.POSITIVE_INFINITY
    void it.nodes[0]?.close().then(() => (closed = it.world.time))
    await it.world.run(3_000)
    expect(closed - begun, `after ${when} ms`).toBeLessThanOrEqual(onClose === 'reject' ? 150 : 650)
    expect(queue.ended).toHaveLength(200)
  }
})

describe('a second pace', () => {
  test.each(['finish', 'reject'] as const)('lets the throttler close in time: %s', async (onClose) => {
    for (let when = 65; when <= 95; when += 5) {
      const slow = { name: 'slow', limit: 1, interval: 10_000, algorithm: leakyBucket({ burst: 10 }) }
      const options = { queue: { onClose, maxWait: '10m' }, closeTimeout: '1s' } as const
      const it = await central(1, [{ ...STRICT_PACE, limit: 100 }, slow], 30, options)
      const [queue] = it.queues as [Waiting]
      for (let i = 0; i < 3; i++) queue.acquire('a', { timeout: '5m' })
      await it.world.run(when)
      const begun = it.world.time
      let closed = Number.POSITIVE_INFINITY
      void it.nodes[0]?.close().then(() => (closed = it.world.time))
      await it.world.run(5_000)
      expect(closed - begun, `after ${when} ms`).toBeLessThanOrEqual(onClose === 'reject' ? 200 : 1_300)
      expect(queue.ended).toHaveLength(3)
    }
  })
})

describe('a bucket gives places ahead, and the other policies decide when these have come', () => {
  test.each(['finish', 'reject'] as const)('while it closes nobody is left: %s', async (onClose) => {
    const it = await central(1, [PACE, { ...LONG, interval: 60_000 }], 20, { queue: { onClose } })
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 300; i++) queue.acquire('a')
    await it.world.run(305)
    const went = queue.went.length
    const closed = it.nodes[0]?.close()
    await it.world.run(2_000)
    await closed
    expect(queue.ended).toHaveLength(300)
    expect(queue.ended.filter(({ failure }) => failure === 'closed').length).toBe(300 - queue.went.length)
    expect(queue.went.length).toBeGreaterThanOrEqual(onClose === 'finish' ? went + 50 : went)
    expect(queue.went.length).toBeLessThanOrEqual(onClose === 'finish' ? went + 110 : went + 3)
    await it.close()
  })

  test('while it closes who is rejected when its place has come waits no more', async () => {
    const it = await central(1, [PACE, { ...LONG, limit: 8, interval: 10_000, coordination: 'local' }], 20)
    const [queue] = it.queues as [Waiting]
    // Until the reservation is due, the window seems to have capacity.
    for (let i = 0; i < 20; i++) queue.acquire('a', { timeout: '30s' })
    await it.world.run(75)
    const closed = it.nodes[0]?.close()
    await it.world.run(1_500)
    await closed
    expect(queue.ended).toHaveLength(20)
    expect(queue.went.length).toBeLessThanOrEqual(8)
    expect(queue.ended.every(({ failure, decision }) => decision?.allowed === true || failure === 'closed')).toBe(true)
    await it.close()
  })
})

test('what closes takes those along that have just come', async () => {
  for (const loaded of [false, true]) {
    const here = scene()
    const node = here.node({ limit: 1, interval: 1_000, coordination: 'local' }, { alone: true, queue: { onClose: 'reject' } })
    if (loaded) await waiting(here, node)
    const all = [1, 2, 3].map(() =>
      node.acquire('a').then(
        () => 'went',
        ({ reason }) => reason,
      ),
    )
    await close(here, node)
    expect((await Promise.all(all)).slice(1)).toEqual(['closed', 'closed'])
  }
})
