import { describe, expect, test } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

describe('a request', () => {
  test('goes at once while there is room, and waits for its turn when there is none', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    const all = Array.from({ length: 5 }, () => queue.acquire('a'))
    await it.world.settle()
    expect(all.map(({ at }) => at)).toEqual([0, 0, undefined, undefined, undefined])
    expect(node.waiting).toBe(3)
    await it.world.run(2_500)
    expect(all.map(({ at }) => at)).toEqual([0, 0, 1_000, 1_000, 2_000])
    expect(queue.went).toEqual(['a0', 'a1', 'a2', 'a3', 'a4'])
    expect(node.waiting).toBe(0)
    await it.close()
  })

  test('goes as soon as a token is there', async () => {
    const it = scene()
    const node = it.node({ limit: 10, interval: 1_000, algorithm: tokenBucket({ burst: 1 }), coordination: 'local' })
    const queue = await waiting(it, node)
    const all = Array.from({ length: 30 }, () => queue.acquire('a'))
    await it.world.run(3_000)
    for (const [i, { at }] of all.entries()) expect(Math.abs((at as number) - 100 * i)).toBeLessThanOrEqual(2)
    await it.close()
  })

  test('waits for the pace of a leaky bucket, and gives its place back when it is aborted', async () => {
    const it = scene()
    const node = it.node({ limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 3 }), coordination: 'local' })
    const queue = await waiting(it, node)
    const controller = new AbortController()
    const all = [0, 1, 2, 3, 4, 5].map((i) => queue.acquire('a', i === 3 ? { signal: controller.signal } : {}))
    await it.world.run(150)
    controller.abort()
    await it.world.run(1_000)
    expect(all.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined, 'aborted', undefined, undefined])
    const went = all.filter(({ decision }) => decision?.allowed).map(({ at }) => at as number)
    // Its unit is free again: whoever comes after it is not later for it.
    expect(went[0]).toBe(0)
    for (let i = 1; i < went.length; i++) expect((went[i] as number) - (went[i - 1] as number)).toBeGreaterThanOrEqual(98)
    expect(went.at(-1)).toBeLessThanOrEqual(502)
    await it.close()
  })

  test('with a higher priority goes first, among equals the first that came', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 })
    const queue = await waiting(it, node)
    queue.acquire('a', { name: 'first' })
    for (const [name, priority] of [
      ['low', 'low'],
      ['b', 'default'],
      ['high', 'high'],
      ['critical', 'critical'],
      ['sheddable', 'sheddable'],
      ['c', undefined],
      ['high too', 'high'],
    ] as const) {
      queue.acquire('a', { name, ...(priority && { priority }) })
    }
    await it.world.run(8_000)
    expect(queue.went).toEqual(['first', 'critical', 'high', 'high too', 'b', 'c', 'low', 'sheddable'])
    await it.close()
  })

  test('with a large cost is not overtaken by small ones of its key', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 4 })
    const queue = await waiting(it, node)
    queue.acquire('a', { name: 'three', cost: 3 })
    queue.acquire('a', { name: 'four', cost: 4 })
    queue.acquire('a', { name: 'one', cost: 1 })
    await it.world.run(3_000)
    expect(queue.ended.map(({ name, at }) => [name, at])).toEqual([
      ['three', 0],
      ['four', 1_000],
      ['one', 2_000],
    ])
    await it.close()
  })

  test('of many policies goes when all of them have room', async () => {
    const it = scene()
    const node = it.node([
      { name: 'key', ...LOCAL, limit: 1, interval: 300 },
      { name: 'all', ...LOCAL, key: 'all', limit: 3, interval: 1_000 },
    ])
    const queue = await waiting(it, node)
    const a = [0, 1, 2, 3].map(() => queue.acquire('a'))
    const b = [0, 1].map(() => queue.acquire('b'))
    await it.world.run(3_000)
    expect(a.map(({ at }) => at)).toEqual([0, 300, 1_000, 1_200])
    expect(b.map(({ at }) => at)).toEqual([0, 1_000])
    await it.close()
  })

  test('starts no cooldown while it waits', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, cooldown: 60_000 })
    const queue = await waiting(it, node)
    for (let i = 0; i < 6; i++) queue.acquire('a')
    await it.world.run(2_100)
    expect(queue.went).toHaveLength(6)
    await it.close()
  })
})

describe('a request that can not go in time', () => {
  test('is rejected at once, also when those before it take the room', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    offer(node, 'a', 2)
    const early = queue.acquire('a', { timeout: 900 })
    const ok = [queue.acquire('a', { timeout: 1_500 }), queue.acquire('a', { timeout: 1_500 })]
    const third = queue.acquire('a', { timeout: 1_500 })
    await it.world.settle()
    expect([early.failure, early.at, early.error?.retryAfterMs]).toEqual(['timeout', 0, 1_000])
    expect([third.failure, third.at, third.error?.retryAfterMs]).toEqual(['timeout', 0, 2_000])
    expect(third.error?.code).toBe('WEIR_NOT_ACQUIRED')
    await it.world.run(1_000)
    expect(ok.map(({ decision }) => decision?.allowed)).toEqual([true, true])
    await it.close()
  })

  test('leaves when its time is over, and takes nothing', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 })
    const queue = await waiting(it, node)
    offer(node, 'a', 1)
    const low = queue.acquire('a', { timeout: 1_500, priority: 'low' })
    queue.acquire('a', { name: 'high', timeout: 5_000 })
    queue.acquire('a', { name: 'next', timeout: 5_000 })
    await it.world.run(4_000)
    expect([low.failure, low.at]).toEqual(['timeout', 1_500])
    expect(queue.went).toEqual(['high', 'next'])
    await it.close()
  })

  test('leaves at once when it is aborted; the signal is the cause', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 })
    const queue = await waiting(it, node)
    const controller = new AbortController()
    offer(node, 'a', 1)
    const aborted = queue.acquire('a', { signal: controller.signal })
    const next = queue.acquire('a')
    await it.world.run(500)
    controller.abort('changed my mind')
    await it.world.run(600)
    expect([aborted.failure, aborted.at, aborted.error?.cause]).toEqual(['aborted', 500, 'changed my mind'])
    expect(next.at).toBe(1_000)
    await it.close()
  })

  test('that costs more than the limit never fits', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    const big = queue.acquire('a', { cost: 3 })
    const nothing = queue.acquire('b', { limit: 0 })
    offer(node, 'c', 2)
    const later = queue.acquire('c', { cost: 2 })
    await it.world.run(10)
    expect([big.failure, nothing.failure, later.failure]).toEqual(['never-fits', 'never-fits', undefined])
    node.update([{ ...LOCAL, limit: 1 }])
    await it.world.run(10)
    expect([later.failure, later.error?.retryAfterMs]).toEqual(['never-fits', Number.POSITIVE_INFINITY])
    await it.close()
  })

  test('gets a decision from tryAcquire', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    offer(node, 'a', 2)
    const rejected = queue.tryAcquire('a', { timeout: 100 })
    const never = queue.tryAcquire('a', { cost: 3, timeout: '5s' })
    const atOnce = queue.tryAcquire('a')
    await it.world.settle()
    expect(rejected.decision).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: 1_000 })
    expect(never.decision).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
    expect(atOnce.decision).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: 1_000 })
    await it.close()
  })
})

describe('what comes free early is used', () => {
  test.each([
    ['refunded', (node, first) => node.refund(first)],
    ['reset', (node) => node.reset('a')],
    ['given another limit', (node) => node.update([{ ...LOCAL, limit: 3 }])],
  ] as [string, (node: ReturnType<ReturnType<typeof scene>['node']>, first: ReturnType<typeof node.check>) => void][])(
    '%s',
    async (_, free) => {
      const it = scene()
      const node = it.node(LOCAL)
      const queue = await waiting(it, node)
      const first = node.check('a')
      node.check('a')
      const next = queue.acquire('a')
      await it.world.run(300)
      free(node, first)
      await it.world.run(10)
      expect(next.at).toBeGreaterThanOrEqual(300)
      expect(next.at).toBeLessThanOrEqual(302)
      await it.close()
    },
  )

  test('unblocked by hand, here or at another node', async () => {
    const it = scene()
    const nodes = [it.node({ limit: 5, interval: 1_000 }), it.node({ limit: 5, interval: 1_000 })] as const
    const queue = await waiting(it, nodes[0])
    for (const node of nodes) node.start()
    await it.world.run(1_500)
    nodes[0].block('a', '20s')
    nodes[0].block('b', '20s')
    const a = queue.acquire('a')
    const b = queue.acquire('b')
    await it.world.run(1_000)
    const begun = it.world.time
    nodes[0].unblock('a')
    nodes[1].unblock('b')
    await it.world.run(1_500)
    expect(a.at).toBeLessThanOrEqual(begun + 2)
    expect(b.at).toBeLessThanOrEqual(begun + 1_200)
    await it.close()
  })
})

test.each(['local', 'background', 'leased', 'central'] as const)(
  'a request that costs much more than the limit never fits: %s',
  async (coordination) => {
    const it = scene()
    const node = it.node({ limit: 10, interval: '1h', coordination }, { alone: coordination === 'local' })
    node.start()
    const queue = await waiting(it, node)
    await it.world.run(1_500)
    const big = queue.acquire('a', { cost: 1_000 })
    await it.world.run(400)
    expect([big.failure, big.error?.retryAfterMs]).toEqual(['never-fits', Number.POSITIVE_INFINITY])
    await it.close()
  },
)

describe('queues are bounded', () => {
  test('per key, also if requests keep a pace', async () => {
    const it = scene()
    const policy = { limit: 1, interval: '1s', algorithm: leakyBucket({ burst: 100 }), coordination: 'local' } as const
    const node = it.node(policy, { queue: { maxWaitingPerKey: 3 } })
    const queue = await waiting(it, node)
    const all = Array.from({ length: 6 }, () => queue.acquire('a'))
    await it.world.settle()
    expect(all.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined, undefined, 'queue-full', 'queue-full'])
    // A request that was rejected has used nothing.
    await it.world.run(1_000)
    const next = queue.acquire('a')
    await it.world.run(3_000)
    expect(next.at).toBe(4_000)
    await it.close()
  })

  test('per key, and in all', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 }, { queue: { maxWaiting: 5, maxWaitingPerKey: 3 } })
    const queue = await waiting(it, node)
    for (const key of ['a', 'b']) offer(node, key, 1)
    const a = [0, 1, 2, 3].map(() => queue.acquire('a'))
    const b = [0, 1, 2].map(() => queue.acquire('b'))
    await it.world.settle()
    expect(a.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined, 'queue-full'])
    expect(b.map(({ failure }) => failure)).toEqual([undefined, undefined, 'queue-full'])
    // A request that leaves makes room.
    await it.world.run(1_000)
    const next = queue.acquire('a')
    await it.world.run(10_000)
    expect(next.decision?.allowed).toBe(true)
    await it.close()
  })

  test('a request waits no longer than maxWait', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, interval: '1h' }, { queue: { maxWait: '10s' } })
    const queue = await waiting(it, node)
    offer(node, 'a', 2)
    expect(queue.acquire('a').failure).toBeUndefined()
    await it.world.settle()
    expect(queue.ended[0]?.failure).toBe('timeout')
    await expect(node.acquire('a', { timeout: '11s' })).rejects.toThrow('Option "timeout" is "11s"')
    await it.close()
  })
})

test('keys that a policy counts together take turns', async () => {
  const it = scene()
  const node = it.node({ ...LOCAL, key: 'all', limit: 1, interval: 100 })
  const queue = await waiting(it, node)
  offer(node, 'x', 1)
  for (let i = 0; i < 6; i++) queue.acquire('greedy', { name: `g${i}` })
  for (const key of ['b', 'c']) for (let i = 0; i < 2; i++) queue.acquire(key, { name: `${key}${i}` })
  await it.world.run(1_100)
  expect(queue.went).toEqual(['g0', 'b0', 'c0', 'g1', 'b1', 'c1', 'g2', 'g3', 'g4', 'g5'])
  await it.close()
})

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

describe('every algorithm lets go what its definition allows, and no more', () => {
  test.each([
    ['slidingLog()', slidingLog()],
    ['slidingWindow()', slidingWindow()],
    ['tokenBucket()', tokenBucket()],
    ['leakyBucket()', leakyBucket()],
  ])('%s', async (_, algorithm) => {
    const it = scene()
    const node = it.node({ limit: 20, interval: 1_000, algorithm, coordination: 'local' })
    const queue = await waiting(it, node)
    for (let i = 0; i < 200; i++) queue.acquire('a')
    await it.world.run(12_000)
    expect(queue.went).toHaveLength(200)
    const times = queue.ended.map(({ at }) => at as number)
    // A bucket adds its burst once.
    for (const [i, at] of times.entries()) {
      const within = times.filter((other) => other >= at && other < at + 1_000).length
      expect(within, `from ${i}`).toBeLessThanOrEqual(algorithm.burst === undefined ? 20 : 40)
    }
    expect(times.at(-1)).toBeLessThanOrEqual(10_500)
    await it.close()
  })
})

test('schedule runs a function in its turn, wrap makes one that waits', async () => {
  const it = scene()
  const node = it.node({ ...LOCAL, limit: 1 })
  await waiting(it, node)
  const ran: string[] = []
  const double = node.wrap(
    (user: string, n: number) => {
      ran.push(`${user} at ${it.world.time}`)
      return 2 * n
    },
    { key: (user) => user, timeout: '5s' },
  )
  const results = Promise.all([double('a', 1), double('a', 2), double('b', 3), node.schedule('b', async () => 'done')])
  await it.world.run(2_000)
  expect(await results).toEqual([2, 4, 6, 'done'])
  expect(ran).toEqual(['a at 0', 'b at 0', 'a at 1000'])
  await expect(node.schedule('c', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await it.close()
})

test.each([
  [{ timeout: -1 }, 'Option "timeout" is -1'],
  [{ timeout: Number.NaN }, 'Option "timeout" is NaN'],
  [{ priority: 1 }, 'Option "priority" is 1'],
  [{ priority: 'urgent' }, '"critical"'],
  [{ signal: {} }, 'Option "signal"'],
  [{ timeOut: 5 }, 'Did you mean "timeout"?'],
  [7, 'Option "options" is 7'],
])('bad options are rejected by name: %j', async (options, message) => {
  const it = scene()
  const node = it.node(LOCAL)
  await expect(node.acquire('a', options as never)).rejects.toThrow(message)
  await expect(node.acquire(7 as never)).rejects.toThrow('A key must be a string')
})

test.each([
  [{ maxWaiting: 0 }, 'Option "queue.maxWaiting" is 0'],
  [{ maxWaitingPerKey: 1.5 }, 'Option "queue.maxWaitingPerKey" is 1.5'],
  [{ maxWait: '60' }, 'Option "queue.maxWait" is "60"'],
  [{ onClose: 'wait' }, 'Option "queue.onClose" is "wait"'],
  [{ maxwait: 1 }, 'Did you mean "maxWait"?'],
  [null, 'Option "queue" is null'],
])('so are those of the queue: %j', (queue, message) => {
  expect(() => scene().node(LOCAL, { queue: queue as never })).toThrow(message)
})
