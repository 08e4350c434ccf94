import { createServer } from 'node:http'
import { outOfFiles } from '@weir/tooling/out-of-files'
import { expect, test } from 'vitest'
import { leakyBucket, limitedFetch } from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { type Node, scene } from '../support/nodes.ts'
// Compiles the file before the tests, because on a busy machine that takes longer than they wait.
import '../../src/throttler/delays.ts'
import type { World } from '../support/world.ts'

const POLICY = { limit: 2, interval: 1_000, coordination: 'local' } as const

/** A throttler without file descriptors to load the code of waiting requests, and its warnings. */
function crowded(policy: Parameters<ReturnType<typeof scene>['node']>[0] = POLICY) {
  const it = scene()
  const files = outOfFiles()
  const node = it.node(policy, { alone: true })
  const warned: string[] = []
  node.on('warning', ({ error }) => warned.push(error.code))
  return { ...it, node, files, warned }
}

/** The result of a promise, after some time. */
async function after<T>({ world }: { readonly world: World }, milliseconds: number, promise: Promise<T>): Promise<unknown> {
  const settled = promise.then(
    (value) => value,
    (error: unknown) => error,
  )
  await world.run(milliseconds)
  return await settled
}

/** Lets the retry succeed. Test files load in real time. */
async function loaded({ world }: { readonly world: World }, node: Node): Promise<void> {
  for (let i = 0; i < 300; i++) {
    await world.run(100)
    await new Promise((resolve) => setTimeout(resolve, 1))
    if (adapterOf(node).inspected.waitingRequests(node.clock.monotonic()) !== undefined) return
  }
}

test('acquire: without its code a request goes at once if it may, else ends with its timeout; later requests wait as ever', async () => {
  const it = crowded()
  const { node, warned } = it
  expect(await after(it, 0, node.acquire('k'))).toMatchObject({ allowed: true })
  expect(await after(it, 0, node.acquire('k'))).toMatchObject({ allowed: true })
  expect(await after(it, 300, node.acquire('k', { timeout: 300 }))).toMatchObject({ code: 'WEIR_NOT_ACQUIRED', reason: 'timeout' })
  expect(await after(it, 300, node.tryAcquire('k', { timeout: 300 }))).toMatchObject({ allowed: false, reason: 'limit' })
  const gone = AbortSignal.abort('left')
  expect(await after(it, 0, node.acquire('k', { signal: gone }))).toMatchObject({ reason: 'aborted', cause: 'left' })
  expect(warned).toEqual(['WEIR_NOT_LOADED'])
  it.files.end()
  await loaded(it, node)
  await it.world.runTo(40_000)
  const all = Promise.all([1, 2, 3].map(() => node.acquire('k')))
  await it.world.run(1_000)
  expect(await all).toHaveLength(3)
  expect(warned).toHaveLength(1)
  await it.close()
})

test('acquire: who waits for the code goes on when it is there, in order', async () => {
  const it = crowded()
  const { node, files } = it
  await after(it, 0, Promise.all([node.acquire('k'), node.acquire('k')]))
  const order: number[] = []
  const all = Promise.all([1, 2, 3].map((n) => node.acquire('k', { timeout: 30_000 }).then(() => order.push(n))))
  await it.world.run(50)
  files.end()
  await loaded(it, node)
  await it.world.run(3_000)
  await all
  expect(order).toEqual([1, 2, 3])
  await it.close()
})

test('acquire: who leaves while the code is missing leaves no timer behind', async () => {
  const it = crowded()
  const { node } = it
  const clock = node.clock as unknown as { readonly outstanding: number }
  await after(it, 0, Promise.all([node.acquire('k'), node.acquire('k')]))
  await it.world.run(10)
  const before = clock.outstanding
  const leaving = new AbortController()
  const all = Array.from({ length: 100 }, () => node.acquire('k', { timeout: '5s', signal: leaving.signal }).catch(({ reason }) => reason))
  await it.world.run(10)
  expect(clock.outstanding).toBe(before + 100)
  leaving.abort()
  await it.world.run(0)
  expect(new Set(await Promise.all(all))).toEqual(new Set(['aborted']))
  expect(clock.outstanding).toBe(before)
  await it.close()
})

test('acquire: as many wait for the code as may wait at all, and closing ends their wait', async () => {
  const it = scene()
  outOfFiles()
  const node = it.node(POLICY, { alone: true, queue: { maxWaiting: 3 } })
  await after(it, 0, Promise.all([node.acquire('k'), node.acquire('k')]))
  const ends = [1, 2, 3, 4, 5].map(() => node.acquire('k').catch(({ reason }: { reason: string }) => reason))
  await it.world.run(10)
  await it.close(node)
  expect(await Promise.all(ends)).toEqual(['closed', 'closed', 'closed', 'queue-full', 'queue-full'])
  expect(await after(it, 0, node.acquire('k'))).toMatchObject({ reason: 'closed' })
})

test('schedule, wrap and limitedFetch work without the code as acquire does', async () => {
  const server = createServer((_, response) => response.end('yes')).listen(0)
  try {
    const it = crowded({ ...POLICY, limit: 10 })
    const { node } = it
    expect(
      await after(
        it,
        0,
        node.schedule('k', () => 'done'),
      ),
    ).toBe('done')
    expect(await after(it, 0, node.wrap((a: number) => a + 1, { key: 'k' })(1))).toBe(2)
    const { port } = server.address() as { port: number }
    const response = (await after(it, 0, limitedFetch(node)(`http://127.0.0.1:${port}/`))) as Response
    expect(await response.text()).toBe('yes')
    await it.close()
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('delay: without the code the process goes on and rejects what it would hold; later it holds again', async () => {
  const it = crowded({ ...POLICY, delay: 2_000 })
  const { node, warned } = it
  await it.world.run(0)
  const decisions = await after(it, 0, Promise.all([1, 2, 3].map(() => node.checkAsync('k'))))
  expect(decisions).toMatchObject([{ allowed: true }, { allowed: true }, { allowed: false, reason: 'limit' }])
  expect(warned).toEqual(['WEIR_NOT_LOADED'])
  it.files.end()
  await loaded(it, node)
  await it.world.run(300)
  await new Promise((resolve) => setTimeout(resolve, 100))
  await it.world.runTo(60_000)
  const held = Promise.all([1, 2, 3].map(() => node.checkAsync('k')))
  await it.world.run(1_500)
  expect(await held).toMatchObject([{ allowed: true }, { allowed: true }, { allowed: true }])
  expect(warned).toHaveLength(1)
  await it.close()
})

test('hold: without the code a request keeps its pace; who leaves gives back what it took', async () => {
  const it = crowded({ ...POLICY, limit: 10, algorithm: leakyBucket({ burst: 5 }) })
  const { node } = it
  const decisions = [1, 2, 3].map(() => node.check('k'))
  expect(decisions.map(({ delayMs: delay }) => delay)).toEqual([0, 100, 200])
  let went = 0
  const all = decisions.map((decision) => node.waitFor(decision).then(() => it.world.time - went))
  went = it.world.time
  await it.world.run(300)
  expect(await Promise.all(all)).toEqual([0, 100, 200])
  await it.world.run(1_000)
  const [, next] = [node.check('k'), node.check('k')] as const
  const leaving = new AbortController()
  const held = after(it, 50, node.waitFor(next, leaving.signal))
  await it.world.run(10)
  leaving.abort()
  expect(await held).toMatchObject({ reason: 'aborted' })
  expect(node.check('k').delayMs).toBeLessThanOrEqual(100)
  await it.close()
})
