import { describe, expect, test } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { NO_POLICIES_YET } from '../../src/http/adapter.ts'
import { createThrottler, LocalMeter } from '../../src/index.ts'
import '../../src/throttler/delays.ts'
import '../../src/throttler/open-queues.ts'
import '../support/loaded.ts'
import { EACH_CELL } from '../support/cells.ts'
import { CENTRAL, started } from '../support/central.ts'
import { type Node, offer, scene, thrownBy } from '../support/nodes.ts'

const MINUTE = 60_000

/** Cells whose units a process can take back by key. */
const CELLS = EACH_CELL.filter(({ algorithm, coordination }) => algorithm.slots === undefined && coordination !== 'central')

/** A throttler without a store, in a world of its own. */
function alone(policies: readonly AnyPolicyOptions<never>[]): Node {
  return scene().node(policies, { alone: true })
}

/** Two processes that count by one rule. The interval is long, so that buckets hardly drain. */
async function two(rule: object): Promise<{ one: Node; other: Node } & ReturnType<typeof scene>> {
  const here = scene()
  const [one, other] = [0, 1].map(() =>
    here.node({ limit: 100, interval: '20m', ...rule } as AnyPolicyOptions<never>).start(),
  ) as Node[] as [Node, Node]
  await here.world.runTo(300)
  return { ...here, one, other }
}

describe.each(CELLS)('$name, $coordination', ({ algorithm, coordination }) => {
  test('a refund by key gives back at most the units that this process counted', async () => {
    const { one, other, world, close } = await two({ algorithm, coordination })
    // Uses charges, because they don't wait.
    one.charge('a', 30)
    other.charge('a', 20)
    await world.run(2_000)
    const own = one.explain('a')[0]?.own ?? Number.NaN
    expect(own).toBeGreaterThan(29.8)
    expect(own).toBeLessThanOrEqual(30)
    expect(one.refund('a', 8)).toBe(8)
    expect(one.explain('a')[0]?.own).toBeCloseTo(own - 8, 3)
    expect(one.refund('a', 1_000)).toBeCloseTo(own - 8, 3)
    expect(one.refund('a', 1)).toBeCloseTo(0, 6)
    expect(one.explain('a')[0]?.own).toBe(0)
    // The other process receives the refund, and keeps its own units.
    const usage = other.usage('a')
    await world.run(1_000)
    expect((await usage)[0]?.used).toBeCloseTo(20, 0)
    expect(other.refund('a', 1_000)).toBeCloseTo(20, 0)
    await close()
  })
})

test.each([
  [fixedWindow(), 0],
  [fixedWindow({ start: 'first-request' }), 0],
  [slidingCounter(), 0],
  [slidingWindow(), 5],
  [slidingLog(), 5],
])('units that do not count any more do not come back: $name', async (algorithm, left) => {
  const { world, node } = scene()
  const throttler = node({ limit: 10, interval: MINUTE, algorithm, coordination: 'local' })
  throttler.check('a', 3)
  await world.runTo(40_000)
  if (left > 0) throttler.check('a', left)
  await world.runTo(MINUTE + 10_000)
  expect(throttler.refund('a', 100)).toBe(left)
  expect(throttler.peek('a').remaining).toBeGreaterThan(5)
  expect(throttler.refund('a', 100)).toBe(0)
})

test.each([slidingWindow(), tokenBucket()])('units of several times come back: $name, background', async (algorithm) => {
  const { one, other, world, close } = await two({ algorithm, interval: MINUTE })
  other.charge('a', 5)
  for (let i = 0; i < 3; i++) {
    one.charge('a', 20)
    await world.run(6_000)
  }
  const own = one.explain('a')[0]?.own ?? Number.NaN
  expect(own).toBeGreaterThan(20)
  expect(one.refund('a', 1_000)).toBeCloseTo(own, 2)
  expect(one.explain('a')[0]).toMatchObject({ own: 0 })
  expect(one.peek('a').remaining).toBeGreaterThanOrEqual(95)
  await close()
})

test('units that a bucket has run out of do not come back', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 60, interval: MINUTE, algorithm: tokenBucket({ burst: 10 }), coordination: 'local' })
  throttler.check('a', 10)
  await world.run(4_000)
  expect(throttler.refund('a', 100)).toBe(6)
  expect(throttler.peek('a').remaining).toBe(10)
})

test('what a warm-up made of units comes back as these units', () => {
  const { node } = scene()
  const throttler = node({ limit: 60, interval: MINUTE, algorithm: tokenBucket({ burst: 30, warmUp: '10s' }), coordination: 'local' })
  throttler.check('a', 4)
  expect(throttler.refund('a', 100)).toBeCloseTo(4, 6)
})

test('units of charges above the limit come back too', () => {
  const { node } = scene()
  for (const algorithm of [fixedWindow(), slidingWindow(), slidingCounter(), slidingLog(), tokenBucket()]) {
    const throttler = node({ limit: 10, interval: MINUTE, algorithm, coordination: 'local' })
    throttler.charge('a', 25)
    expect(throttler.explain('a')[0]).toMatchObject({ own: 25, remaining: 0, next: 'reject' })
    expect(throttler.refund('a', 20)).toBe(20)
    expect(throttler.peek('a').remaining).toBeCloseTo(5, 6)
  }
})

test('parts of units come back from several times', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 10, interval: MINUTE, algorithm: slidingLog(), coordination: 'local' })
  for (const units of [0.5, 1, 2.25]) {
    throttler.check('a', units)
    await world.run(1_000)
  }
  expect(throttler.refund('a', 3)).toBe(3)
  expect(throttler.peek('a').remaining).toBe(9.25)
})

test('an algorithm of the application that gives nothing back', () => {
  class Kept extends LocalMeter {
    protected hasCapacity(slot: number, cost: number, limit: number): boolean {
      return (this.fields[slot] as number) + cost <= limit
    }
    protected count(slot: number, cost: number): void {
      this.fields[slot] = (this.fields[slot] as number) + cost
    }
    protected left(slot: number, limit: number): number {
      return Math.max(0, limit - (this.fields[slot] as number))
    }
    protected wait(): number {
      return 1_000
    }
  }
  const { node } = scene()
  const algorithm = { name: 'kept()', id: 'kept', fields: 1, local: (site: ConstructorParameters<typeof LocalMeter>[0]) => new Kept(site) }
  const throttler = node({ limit: 10, interval: MINUTE, algorithm, coordination: 'local' })
  throttler.check('a', 4)
  expect(throttler.refund('a', 2)).toBe(0)
  expect(throttler.peek('a').remaining).toBe(6)
})

test('a request that waits goes when units come back', async () => {
  const { world, node, close } = scene()
  const throttler = node({ limit: 3, interval: '10s', coordination: 'local' })
  offer(throttler, 'a', 3)
  const waiting = throttler.acquire('a', { timeout: '20s' })
  await world.run(100)
  throttler.refund('a', 1)
  await world.run(10)
  expect((await waiting).allowed).toBe(true)
  await close()
})

test('of several policies one is named, and the key is the one that it counts', () => {
  const throttler = alone([
    { name: 'user', limit: 10, interval: '1h', coordination: 'local' },
    { name: 'all', limit: 10, interval: '1h', key: 'all', coordination: 'local' },
  ])
  throttler.charge('ann', 4, { policy: 'user' })
  throttler.charge('bob', 3, { policy: 'all' })
  const left = (): readonly number[] => throttler.peek('ann').parts.map(({ remaining }) => remaining)
  expect(left()).toEqual([6, 7])
  expect(throttler.refund('ann', 9, { policy: 'all' })).toBe(3)
  expect(throttler.refund('nobody', 9, { policy: 'user' })).toBe(0)
  expect(left()).toEqual([6, 10])
})

const rules = ['login', 'api'].map((name) => ({ name, limit: 5, interval: '1h', coordination: 'local' }) as const)

test.each<[units: unknown, options: unknown, code: string, message: RegExp]>([
  [
    1,
    undefined,
    'WEIR_MISSING_OPTION',
    /^Option "policy" is missing\. Set it for (refund|charge)\(key, units\) to one of "login", "api"\./,
  ],
  [1, { policy: 'logon' }, 'WEIR_UNKNOWN_POLICY', /^Unknown policy "logon"\. This throttler has "login" and "api"\./],
  [1, 'login', 'WEIR_INVALID_OPTION', /^Option "options" is "login"/],
  [1, { policies: 'login' }, 'WEIR_UNKNOWN_OPTION', /^Unknown option "policies"/],
  [-1, { policy: 'api' }, 'WEIR_INVALID_OPTION', /^Option "units" is -1. Use a finite number of at least 0/],
  [Number.NaN, { policy: 'api' }, 'WEIR_INVALID_OPTION', /^Option "units" is NaN/],
  [Number.POSITIVE_INFINITY, { policy: 'api' }, 'WEIR_INVALID_OPTION', /^Option "units" is Infinity/],
  ['2', { policy: 'api' }, 'WEIR_INVALID_OPTION', /^Option "units" is "2"/],
  [undefined, { policy: 'api' }, 'WEIR_INVALID_OPTION', /^Option "units" is/],
])('a wrong call throws and changes nothing: %j, %j', (units, options, code, message) => {
  const throttler = alone(rules)
  expect(throttler.state).toBe('idle')
  for (const call of ['refund', 'charge'] as const) {
    const error = thrownBy(() => throttler[call]('ann', units as never, options as never))
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
  }
  expect(throttler.state).toBe('idle')
  expect(throttler.peek('ann').parts.map(({ remaining }) => remaining)).toEqual([5, 5])
})

test('a throttler without policies yet rejects a refund or a charge by key', () => {
  const throttler = createThrottler({ policies: NO_POLICIES_YET })
  for (const call of ['refund', 'charge'] as const) {
    expect(() => throttler[call]('ann', 1)).toThrow(
      `Option "policy" is missing. The throttler has no policy yet, which ${call}(key, units) needs.`,
    )
  }
})

test('no units, and a closed throttler, change nothing', async () => {
  const throttler = alone(rules.slice(0, 1))
  throttler.check('ann', 2)
  expect(throttler.refund('ann', 0)).toBe(0)
  throttler.charge('ann', 0)
  expect(throttler.peek('ann').remaining).toBe(3)
  await throttler.close()
  expect(throttler.refund('ann', 1)).toBe(0)
  throttler.charge('ann', 1)
})

test.each([
  [
    'local',
    concurrency(),
    /^(refund|charge)\(key, units\) does not apply to policy "default", which counts requests in flight\. Use release\(decision\)/,
  ],
  ['leased', concurrency(), /which counts requests in flight/],
] as const)('slots are released by their decisions: %s', async (coordination, algorithm, message) => {
  const { node, close } = scene()
  const throttler = node({ limit: 3, algorithm, coordination } as AnyPolicyOptions<never>)
  for (const call of ['refund', 'charge'] as const) expect(() => throttler[call]('a', 1)).toThrow(message)
  await close()
})

test('where the store counts, a charge by key is sent to it, and a refund needs the decision', async () => {
  const here = scene()
  const [one, other] = [here.node({ ...CENTRAL, limit: 100 }), here.node({ ...CENTRAL, limit: 100 })]
  await started(here, one, other)
  const { world, close } = here
  one.charge('a', 30)
  await world.run(100)
  const deciding = other.checkAsync('a')
  await world.run(100)
  expect((await deciding).remaining).toBe(69)
  expect(() => one.refund('a', 1)).toThrow(/policy "default", which is counted by the store\. Use refund\(decision, units\)/)
  await close()
})
