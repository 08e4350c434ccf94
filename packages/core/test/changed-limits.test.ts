import { beforeAll, describe, expect, test } from 'vitest'
import type { AnyAlgorithm, Coordination } from '../src/algorithms/algorithm.ts'
import { fixedWindow } from '../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../src/algorithms/leaky-bucket/index.ts'
import { slidingWindow } from '../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../src/decide/decision.ts'
import type { AnyPolicyOptions } from '../src/decide/policy.ts'
import { adapterOf } from '../src/throttler/adapter-side.ts'
import { EACH_CELL } from './support/cells.ts'
import { type Node, type Scene, scene } from './support/nodes.ts'

/** The ways by which a key gets another limit. */
const WAYS = ['update', 'override', 'function', 'call'] as const

type Way = (typeof WAYS)[number]

class Limited {
  readonly #scene: Scene = scene()
  readonly #options: object
  readonly #way: Way
  readonly #waits: boolean
  readonly #node: Node
  #limit: number | undefined
  /** Requests so far. */
  allowed = 0
  rejected = 0

  constructor(algorithm: AnyAlgorithm, coordination: Coordination, way: Way, limit: number) {
    this.#options = { name: 'a', ...(algorithm.slots === undefined && { interval: '1h' }), algorithm, coordination }
    this.#way = way
    this.#limit = limit
    this.#node = this.#scene.node(this.#policy(way === 'update' ? limit : USUAL), { alone: coordination === 'local' })
    this.#waits = adapterOf(this.#node).waits
  }

  #policy(limit: number): AnyPolicyOptions {
    return { ...this.#options, limit } as AnyPolicyOptions
  }

  async start(): Promise<this> {
    const limit = this.#limit
    this.#node.start()
    // The queue is loaded with the first request that waits, which takes real time.
    let loaded = !this.#waits
    if (this.#waits) this.#node.checkAsync('another').then(() => (loaded = true))
    while (!loaded) {
      await new Promise((resolve) => setImmediate(resolve))
      await this.#scene.world.run(10)
    }
    await this.#scene.world.run(2_000)
    if (limit !== undefined) this.limitTo(limit)
    return this
  }

  limitTo(limit: number): void {
    this.#limit = limit
    if (this.#way === 'update') this.#node.update([this.#policy(limit)])
    if (this.#way === 'override') this.#node.update([this.#policy(USUAL)], [{ policy: 'a', key: 'k', limit }])
  }

  /** Requests have no limit of their own any more. */
  limitNoMore(): void {
    this.#limit = undefined
  }

  rest(time: number): Promise<void> {
    return this.#scene.world.run(time)
  }

  /** How many of so many requests at once are not rejected. */
  async offer(count: number): Promise<number> {
    let rejected = 0
    const decided = ({ allowed }: Decision): void => {
      this.allowed += allowed ? 1 : 0
      this.rejected += allowed ? 0 : 1
      rejected += allowed ? 0 : 1
    }
    const one = (): void => {
      const decision = this.#decide()
      if (decision instanceof Promise) decision.then(decided)
      else decided(decision)
    }
    for (let i = 0; i < count; i++) {
      one()
      if (this.#waits) await this.#scene.world.run(3)
    }
    if (this.#waits) await this.#scene.world.run(100)
    return count - rejected
  }

  #decide(): Decision | Promise<Decision> {
    const node = this.#node
    const limit = this.#limit
    if (this.#way === 'function')
      return adapterOf(node).waits
        ? adapterOf(node).decideAsync(['k'], [1], [0], 1, [limit])
        : adapterOf(node).decide(['k'], [1], [0], 1, [limit])
    const options = this.#way === 'call' ? { limit } : undefined
    return adapterOf(node).waits ? node.checkAsync('k', options) : node.check('k', options)
  }

  close(): Promise<void> {
    return this.#scene.close()
  }
}

/** The policy's limit, while the key has another one. */
const USUAL = 7

/** The allowed units without a limit of their own, before and after requests with this limit. */
async function around(algorithm: AnyAlgorithm, coordination: Coordination, before: number, limits: readonly (number | undefined)[]) {
  const it = await new Limited(algorithm, coordination, 'call', USUAL).start()
  it.limitNoMore()
  const passed = [await it.offer(before)]
  for (const limit of limits) {
    await it.rest(60_000)
    if (limit !== undefined) it.limitTo(limit)
    passed.push(await it.offer(1))
    it.limitNoMore()
  }
  passed.push(await it.offer(20))
  for (let i = 0; i < 3; i++) {
    await it.rest(600_000)
    passed.push(await it.offer(20))
  }
  await it.close()
  return passed
}

describe.each(EACH_CELL)('with $name, $coordination, the limit of one call', ({ algorithm, coordination }) => {
  const LIMITS = [5, 8, 1_000, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY] as const
  let without: ReturnType<typeof around>
  beforeAll(() => {
    without = around(algorithm, coordination, 3, [undefined])
  })

  test.each(LIMITS)('(%s) changes nothing for later ones without a limit', async (limit) => {
    expect(await around(algorithm, coordination, 3, [limit])).toEqual(await without)
  })

  test.each(LIMITS)('(%s) makes no room in a full key', async (limit) => {
    const [first, , then] = await around(algorithm, coordination, 9, [limit])
    expect([first, then]).toEqual([USUAL, 0])
  })

  test('(none, several times) makes no room in a full key', async () => {
    const unlimited = [1, 2, 3, 4].map(() => Number.POSITIVE_INFINITY)
    expect((await around(algorithm, coordination, 9, unlimited))[5]).toBe(0)
  })
})

describe.each(EACH_CELL)('with $name, $coordination, a limit that is changed', ({ algorithm, coordination }) => {
  test.each(WAYS)('by %s counts from the next decision on, whether or not the key was full', async (way) => {
    const raised = await new Limited(algorithm, coordination, way, 10).start()
    expect(await raised.offer(5), 'below the first limit').toBe(5)
    raised.limitTo(20)
    expect(await raised.offer(40), 'raised before it was full').toBe(15)
    raised.limitTo(30)
    expect(await raised.offer(40), 'raised when it was full').toBe(10)
    raised.limitTo(31)
    expect(await raised.offer(5), 'raised a little when it was full').toBe(1)
    raised.limitTo(15)
    expect(await raised.offer(5), 'lowered when it was full').toBe(0)
    raised.limitTo(36)
    expect(await raised.offer(40), 'raised above what it was').toBe(5)
    await raised.close()

    const lowered = await new Limited(algorithm, coordination, way, 20).start()
    expect(await lowered.offer(5), 'below the first limit').toBe(5)
    lowered.limitTo(10)
    expect(await lowered.offer(40), 'lowered before it was full').toBe(5)
    lowered.limitTo(5)
    expect(await lowered.offer(5), 'lowered when it was full').toBe(0)
    lowered.limitTo(12)
    expect(await lowered.offer(5), 'raised again').toBe(2)
    await lowered.close()
  })
})

/** A limit, and hours of rest before it. */
const STEPS = [
  [4, 0.5],
  [20, 0],
  [15, 0.5],
  [30, 0.2],
  [3, 0.9],
  [25, 0.1],
  [26, 0.5],
] as const

/** Without buckets whose requests wait: a request that would be late by the new limit is rejected, and others may wait instead. */
const FILLED = EACH_CELL.filter(({ name, coordination }) => /Bucket/.test(name) && !(/leaky/.test(name) && coordination === 'background'))

describe.each(FILLED)('with $name, $coordination, a limit that is changed after a rest', ({ algorithm, coordination }) => {
  test.each(WAYS)('by %s meets what has drained by the limits before and after, not more and not less', async (way) => {
    const it = await new Limited(algorithm, coordination, way, 12).start()
    expect(await it.offer(20)).toBe(12)
    // Limits by which it may have drained since it was full; by the policy's, if requests bring their own.
    const usual = way === 'function' || way === 'call' ? [USUAL] : []
    let [full, hours, rates] = [12, 0, [...usual, 12]]
    for (const [limit, rest] of STEPS) {
      await it.rest(rest * 3_600_000)
      it.limitTo(limit)
      hours += rest
      rates.push(limit)
      // In the background a level is known to a thousandth of the interval.
      const left = (rate: number): number => Math.min(limit, Math.max(0, full - rate * hours))
      const passed = await it.offer(40)
      const told = `${limit} after ${hours} hours without one that passed, of ${full}`
      expect(passed, told).toBeGreaterThanOrEqual(Math.floor(limit - left(Math.min(...rates)) - 0.1))
      expect(passed, told).toBeLessThanOrEqual(Math.floor(limit - left(Math.max(...rates)) + 0.1))
      if (passed > 0) [full, hours, rates] = [limit, 0, [...usual, limit]]
    }
    await it.rest(36_000_000)
    it.limitTo(9)
    expect(await it.offer(40), 'when it was empty').toBe(9)
    await it.close()
  })
})

test.each(['update', 'override'] as const)(
  'by %s: a request that waits, is first in line and would be late by a lower limit is rejected at once; others may wait instead, at the new pace',
  async (way) => {
    const it = await new Limited(leakyBucket(), 'background', way, 30).start()
    expect(await it.offer(40)).toBe(30)
    await it.rest(54 * 60_000)
    // Two wait, and must go within four minutes: the next one may six minutes after the last.
    expect([it.allowed, it.rejected]).toEqual([28, 10])
    it.limitTo(10)
    expect(await it.offer(12)).toBe(9)
    expect([it.allowed, it.rejected]).toEqual([28, 15])
    let before = it.allowed
    for (let passed = 0; passed < 60; passed += 6) {
      await it.rest(6 * 60_000)
      expect(it.allowed - before).toBeLessThanOrEqual(1)
      before = it.allowed
    }
    // The store drains the latest units at the new pace.
    expect(it.allowed).toBeGreaterThanOrEqual(28 + 6)
    await it.close()
  },
)

describe.each([leakyBucket({ burst: 5 }), tokenBucket()])(
  'with $name in the background, a limit that is lowered after a long time of too many requests',
  (algorithm) => {
    test.each([1, 3])('holds at once, and nothing of that time is in its way: %i nodes', async (count) => {
      const it = scene()
      const policy = (limit: number) => ({ limit, interval: '1s', algorithm }) as const
      const nodes = Array.from({ length: count }, () => it.node(policy(20)))
      let loaded = 0
      for (const node of nodes) {
        node.start()
        node.checkAsync('another').then(() => loaded++)
      }
      while (loaded < count) {
        await new Promise((resolve) => setImmediate(resolve))
        await it.world.run(10)
      }
      let allowed = 0
      let asked = 0
      const seconds = async (time: number): Promise<number> => {
        allowed = 0
        for (let i = 0; i < 30 * time; i++) {
          nodes[asked++ % count]?.checkAsync('k').then((decision) => (allowed += decision.allowed ? 1 : 0))
          await it.world.run(1_000 / 30)
        }
        return allowed
      }
      await seconds(100)
      const before = await seconds(10)
      expect(before).toBeGreaterThanOrEqual(190)
      expect(before).toBeLessThanOrEqual(220)
      for (const node of nodes) node.update([policy(10)])
      const after = await seconds(10)
      expect(after).toBeGreaterThanOrEqual(70)
      expect(after).toBeLessThanOrEqual(110)
      await it.close()
    })
  },
)

test('a limit that is raised and lowered again leaves nothing of the time between in the way', async () => {
  const it = scene()
  const policy = (limit: number) => ({ limit, interval: '10s', algorithm: leakyBucket({ burst: 1 }) }) as const
  const node = it.node(policy(1))
  node.start()
  let loaded = false
  node.checkAsync('another').then(() => (loaded = true))
  while (!loaded) {
    await new Promise((resolve) => setImmediate(resolve))
    await it.world.run(10)
  }
  const offer = async (count: number, pause: number): Promise<number> => {
    let allowed = 0
    for (let i = 0; i < count; i++) {
      node.checkAsync('k').then((decision) => (allowed += decision.allowed ? 1 : 0))
      await it.world.run(pause)
    }
    return allowed
  }
  expect(await offer(25, 40)).toBe(1)
  node.update([policy(200)])
  expect(await offer(225, 40)).toBeGreaterThanOrEqual(170)
  node.update([policy(1)])
  // Some groups of the quick time drain at the slow pace.
  await offer(30, 2_000)
  expect(await offer(30, 2_000)).toBe(6)
  await it.close()
})

describe.each(EACH_CELL.filter(({ name }) => /sliding(Log|Window)/.test(name)))(
  'with $name, $coordination, a limit that is changed after a rest',
  ({ algorithm, coordination }) => {
    test.each(WAYS)('by %s meets what is still in the window', async (way) => {
      const it = await new Limited(algorithm, coordination, way, 12).start()
      expect(await it.offer(20)).toBe(12)
      await it.rest(1_800_000)
      it.limitTo(4)
      expect(await it.offer(5), 'lowered').toBe(0)
      it.limitTo(20)
      expect(await it.offer(30), 'raised').toBe(8)
      await it.rest(2_400_000)
      it.limitTo(15)
      expect(await it.offer(30), 'lowered when the first had left').toBe(7)
      await it.rest(36_000_000)
      it.limitTo(9)
      expect(await it.offer(40), 'lowered when it was empty').toBe(9)
      await it.close()
    })
  },
)

test.each<Coordination>(['local', 'central'])(
  'a bucket that warms up keeps its units when its limit changes, and a call without a limit counts there, %s',
  async (coordination) => {
    const algorithm = tokenBucket({ warmUp: 600_000 })
    for (const way of WAYS) {
      const it = await new Limited(algorithm, coordination, way, 100).start()
      // While it is cold they cost 8.33 units more.
      expect(await it.offer(40)).toBe(40)
      it.limitTo(10)
      expect(await it.offer(5), `lowered by ${way}`).toBe(0)
      it.limitTo(130)
      expect(await it.offer(100), `raised by ${way}`).toBe(81)
      await it.close()
    }
    const it = await new Limited(algorithm, coordination, 'call', Number.POSITIVE_INFINITY).start()
    expect(await it.offer(30)).toBe(30)
    it.limitNoMore()
    expect(await it.offer(5), 'after calls without a limit').toBe(0)
    await it.close()
  },
)

test.each([fixedWindow(), slidingWindow(), tokenBucket()])(
  'with $name, a key that other nodes have filled has room for a higher limit',
  async (algorithm) => {
    const it = scene()
    const [one, two] = [it.node({ limit: 10, interval: '1h', algorithm }), it.node({ limit: 10, interval: '1h', algorithm })]
    for (const node of [one, two]) node.start()
    await it.world.run(2_000)
    const offer = (node: Node, count: number, limit?: number): number => {
      let allowed = 0
      for (let i = 0; i < count; i++) if (node.check('k', { limit }).allowed) allowed++
      return allowed
    }
    expect(offer(one, 15)).toBe(10)
    await it.world.run(2_000)
    expect(offer(two, 5), 'full by what the other node has told').toBe(0)
    expect(offer(two, 30, 15), 'raised').toBe(5)
    expect(offer(two, 5, 12), 'lowered').toBe(0)
    await it.world.run(2_000)
    expect(offer(one, 30, 16), 'raised at the first one').toBe(1)
    expect(offer(one, 5), 'without a limit').toBe(0)
    await it.close()
  },
)

test.each<Coordination>(['local', 'background', 'periodic'])(
  'a cooldown that has begun lasts to its end whatever limit comes, %s',
  async (coordination) => {
    const it = scene()
    const node = it.node({ limit: 10, interval: '1m', cooldown: '5s', coordination }, { alone: coordination === 'local' })
    for (let i = 0; i < 11; i++) node.check('k')
    expect(node.check('k', { limit: 20 })).toMatchObject({ allowed: false, reason: 'cooldown' })
    await it.world.run(61_000)
    expect(node.check('k', { limit: 20 })).toMatchObject({ allowed: true })
    await it.close()
  },
)

test('peeking with another limit opens no key', async () => {
  for (const options of [{ coordination: 'periodic' }, { algorithm: slidingWindow() }, { algorithm: tokenBucket() }] as const) {
    const it = scene()
    const node = it.node({ limit: 10, interval: '1h', ...options })
    node.start()
    await it.world.run(2_000)
    for (let i = 0; i < 12; i++) node.check('k')
    const before = node.peek('k')
    expect(node.peek('k', { limit: 20 })).toMatchObject({ allowed: true, limit: 20 })
    expect({ ...node.peek('k') }).toEqual({ ...before })
    expect(node.check('k').allowed).toBe(false)
    await it.close()
  }
})
