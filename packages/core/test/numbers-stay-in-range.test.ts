import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { slidingCounter } from '../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../src/algorithms/sliding-window/index.ts'
import { escalating } from '../src/decide/escalating.ts'
import { HeaderWriter, retryAfterSeconds } from '../src/http/answer/headers.ts'
import type { Rejection } from '../src/http/answer/rejection.ts'
import { ThrottledError, upgradeRejection } from '../src/http/answer/rejection.ts'
import { createGuard } from '../src/http/guard.ts'
import type { Decision, PolicyOptions } from '../src/index.ts'
import { snapshot } from '../src/inspect/index.ts'
import type { SyncRequest } from '../src/store/contract.ts'
import { adapterOf } from '../src/throttler/adapter-side.ts'
import { type FakeRequest, fakeReader } from './http/fake-request.ts'
import { ManualTime } from './http/manual-time.ts'
import { type Node, type Scene, scene, thrownBy } from './support/nodes.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

const MOST = Number.MAX_SAFE_INTEGER
const DAY = 24 * 3_600_000

/** Values that a caller may pass as a number of units. */
const nonsense = fc.constantFrom<unknown>(
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  0,
  -0,
  -1,
  -5e-324,
  '5',
  5n,
  null,
  {},
  [3],
  true,
)
const extreme = fc.constantFrom(
  5e-324,
  1e-300,
  2 ** -54,
  0.1,
  1 / 3,
  1,
  2,
  2 ** 31,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 64,
  1e300,
  1e308,
  Number.MAX_VALUE,
)
const units = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 2, arbitrary: extreme },
  { weight: 1, arbitrary: fc.double({ min: 1e-3, max: 1e6, noNaN: true }) },
  { weight: 1, arbitrary: nonsense },
) as fc.Arbitrary<number>
const limits = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 40 }) },
  { weight: 1, arbitrary: fc.constantFrom(1, 1.5, 1e6, 2 ** 52, MOST - 1, MOST) },
)

type Step =
  | { readonly do: 'check' | 'peek' | 'checkAsync'; readonly key: string; readonly cost: number | undefined }
  | { readonly do: 'charge' | 'refund'; readonly of: number; readonly units: number | undefined }
  | { readonly do: 'block'; readonly key: string; readonly for: number }
  | { readonly do: 'unblock'; readonly key: string }
  | { readonly do: 'update'; readonly limit: number }
  | { readonly do: 'pass'; readonly time: number }
  | { readonly do: 'health'; readonly up: boolean }

const key = fc.constantFrom('a', 'b')
const cost = fc.option(units, { nil: undefined })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constantFrom('check' as const, 'check' as const, 'peek' as const, 'checkAsync' as const), key, cost }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('charge' as const, 'refund' as const), of: fc.nat(), units: cost }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('block' as const),
      key,
      for: fc.constantFrom(1, 1.5, 2 ** 31, 2 ** 33, 3e13, 8.64e15, 1e308, -1, Number.NaN),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('unblock' as const), key }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('update' as const), limit: limits }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass' as const), time: fc.constantFrom(0, 0.25, 3, 200, 999, 5_000, 61_000, 400_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('health' as const), up: fc.boolean() }) },
)

/** A policy of this process alone. */
const alone = <Rule extends Partial<PolicyOptions>>(policy: Rule): Rule => ({ ...policy, coordination: 'local' })

const KINDS: Readonly<Record<string, Partial<PolicyOptions>>> = {
  'fixed, background': {},
  'fixed, background, with a cooldown': { cooldown: '2m' },
  'fixed, background, with a escalating cooldown': { cooldown: escalating({ base: '1s', factor: 100, max: '1000y' as '1d' }) },
  'fixed, spans': { coordination: 'periodic' },
  sliding: { algorithm: slidingWindow() },
  'sliding counter, spans': { algorithm: slidingCounter(), coordination: 'periodic' },
  'fixed, open without a store': { failMode: 'open' },
  'sliding, open without a store': { algorithm: slidingWindow(), failMode: 'open' },
  'two windows, open without a store': { algorithm: slidingCounter(), coordination: 'periodic', failMode: 'open' },
}

/** Checks every number of a decision. */
function checkDecision(decision: Decision): void {
  for (const { allowed, limit, remaining, resetAfterMs, retryAfterMs, cost: taken, policy } of [decision, ...decision.parts]) {
    expect(limit).toBeGreaterThanOrEqual(1)
    expect(limit).toBeLessThanOrEqual(MOST)
    expect(remaining).toBeGreaterThanOrEqual(0)
    expect(remaining).toBeLessThanOrEqual(limit)
    expect(Number.isFinite(resetAfterMs) && resetAfterMs >= 0).toBe(true)
    expect(taken >= 0 && taken <= limit).toBe(true)
    if (allowed) expect(retryAfterMs).toBe(0)
    else expect(retryAfterMs).toBeGreaterThanOrEqual(1)
    expect(Number.isNaN(retryAfterMs) || policy === undefined).toBe(false)
  }
  const fields: Record<string, string> = {}
  new HeaderWriter(
    decision.parts.map((part) => part.policy as never),
    ['draft-11', 'legacy'],
  ).write(decision, fields, (target, name, value) => {
    target[name] = value
  })
  for (const value of Object.values(fields)) expect(value).not.toMatch(/NaN|Infinity|undefined|e\+|-\d/)
  const seconds = decision.allowed ? 1 : retryAfterSeconds(decision)
  expect(seconds === undefined || (Number.isSafeInteger(seconds) && seconds >= 1)).toBe(true)
}

/** Every number in something, however deep. */
function* numbersIn(value: unknown): Iterable<number> {
  if (typeof value === 'number') yield value
  else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) yield* numbersIn(one)
}

function checkRequest({ entries, blocks }: SyncRequest): void {
  for (const { cells } of entries) {
    for (const { taken, given } of cells) {
      for (const count of [taken, given]) expect(count >= 0 && count <= MOST, `${count} is sent`).toBe(true)
    }
  }
  for (const { remaining } of blocks) expect(remaining >= 0 && remaining <= 1000 * 366 * DAY).toBe(true)
}

async function play(here: Scene, node: Node, steps: readonly Step[], policy: PolicyOptions, connected: boolean): Promise<void> {
  const allowed: Decision[] = []
  const { world, store } = here
  for (const one of steps) {
    switch (one.do) {
      case 'check':
      case 'peek': {
        const decision = node[one.do](one.key, one.cost)
        checkDecision(decision)
        const limit = node.policies[0]?.limit as number
        if (typeof one.cost === 'number' && one.cost > limit && one.cost < Number.POSITIVE_INFINITY) {
          expect(decision).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
          expect(retryAfterSeconds(decision)).toBeUndefined()
        } else expect(decision.retryAfterMs).not.toBe(Number.POSITIVE_INFINITY)
        if (one.do === 'check' && decision.allowed) allowed.push(decision)
        break
      }
      case 'checkAsync': {
        const waiting = node.checkAsync(one.key, one.cost)
        await world.run(60)
        checkDecision(await waiting)
        break
      }
      case 'charge':
      case 'refund': {
        const decision = allowed[one.of % Math.max(1, allowed.length)]
        if (decision === undefined) break
        node[one.do](decision, one.units as number)
        expect(decision.cost).toBeGreaterThanOrEqual(0)
        break
      }
      case 'block':
        if (one.for >= 1 && one.for <= 3.2e13) node.block(one.key, one.for)
        else expect(thrownBy(() => node.block(one.key, one.for)).code).toBe('WEIR_INVALID_OPTION')
        break
      case 'unblock':
        node.unblock(one.key)
        break
      case 'update':
        node.update([{ ...policy, limit: one.limit }])
        break
      case 'pass':
        await world.run(one.time)
        break
      case 'health':
        store.health = one.up ? 'up' : 'rejecting'
        await world.run(400)
    }
    for (const number of numbersIn(snapshot(node).policies)) expect(Number.isFinite(number) && number >= 0).toBe(true)
  }
  if (connected) for (const { request } of store.requests) checkRequest(request)
}

describe.each(Object.entries(KINDS))('%s', (_, kind) => {
  test.each([
    ['alone', false],
    ['with a store and another node', true],
  ])('no sequence of calls leaves the range of numbers: %s', async (_name, connected) => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { minLength: 5, maxLength: 40 }), async (limit, steps) => {
        const here = scene()
        const rule = { limit, interval: '1m', ...kind } as PolicyOptions
        const policy = connected ? rule : alone(rule)
        const node = here.node(policy as PolicyOptions<never>, { alone: !connected })
        node.on('warning', () => {})
        const other = connected ? here.node(policy as PolicyOptions<never>) : undefined
        node.start()
        other?.start()
        await here.world.run(30)
        for (let i = 0; i < 3; i++) other?.check('a')
        await play(here, node, steps, policy, connected)
        // After all of it an unused key is counted like any other.
        here.store.health = 'up'
        await here.world.run(10_000)
        const whole = Math.min(5, Math.floor(node.policies[0]?.limit as number))
        for (let i = 0; i < whole; i++) expect(node.check('untouched').allowed).toBe(true)
        for (const touched of ['a', 'b']) node.unblock(touched)
        // A used key is counted like any other once its window has passed.
        await here.world.run(300_000)
        for (let i = 0; i < whole; i++) expect(node.check('b'), `check ${i}`).toMatchObject({ allowed: true })
        await here.close()
      }),
      { numRuns: 40 },
    )
  })
})

test('checks alone never allow more than the limit, however large or small the costs', () => {
  fc.assert(
    fc.property(
      limits,
      fc.constantFrom({}, { algorithm: slidingWindow() }, { algorithm: slidingCounter() }),
      fc.array(fc.oneof(extreme, fc.integer({ min: 1, max: 12 }), fc.double({ min: 1e-3, max: 50, noNaN: true })), { maxLength: 200 }),
      (limit, kind, costs) => {
        const node = scene().node(alone({ limit, interval: '1m', ...kind }), { alone: true })
        let allowed = 0
        for (const one of costs) {
          const decision = node.check('k', one)
          checkDecision(decision)
          // The decision of a naive limiter, as exact as numbers are.
          if (Object.keys(kind).length === 0) expect(decision.allowed).toBe(allowed + one <= limit)
          if (decision.allowed) allowed += one
        }
        expect(allowed).toBeLessThanOrEqual(limit)
      },
    ),
    { numRuns: 500 },
  )
})

describe('charges', () => {
  test.each(Object.entries(KINDS))('however large, they saturate and are over with the window: %s', async (_, kind) => {
    const { world, node, close } = scene()
    const throttler = node(alone({ limit: 100, interval: '1m', ...kind }) as PolicyOptions<never>, { alone: true })
    const decision = throttler.check('a')
    throttler.charge(decision, 1e308)
    throttler.charge(decision, 1e308)
    throttler.charge(decision, Number.MAX_VALUE)
    expect(throttler.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
    const used = snapshot(throttler).policies[0]?.allowed as number
    expect(used).toBeGreaterThan(0)
    expect(Number.isFinite(used)).toBe(true)
    await world.run(300_000)
    expect(throttler.check('a')).toMatchObject({ allowed: true })
    await close()
  })

  test('of several nodes they add up to a number that a store can keep', async () => {
    const { world, node, store, close } = scene()
    const nodes = [1, 2, 3].map(() => node({ limit: 100, interval: '1h' }).start() as Node)
    await world.run(100)
    for (const one of nodes) one.charge(one.check('a'), 1e300)
    // Until a span ends.
    await world.run(660_000)
    for (const one of nodes) expect(one.check('a')).toMatchObject({ allowed: false, remaining: 0 })
    const total = store.total(nodes[0]?.policies[0] as never, 'a', 1_800_000_000_000)
    expect(total).toEqual({ taken: MOST, given: 0 })
    await close()
  })
})

describe('a request that costs more than the limit', () => {
  test('is told that it never fits, and not when to come again', () => {
    const guard = createGuard<FakeRequest, readonly []>(
      { key: 'route', limit: 5, interval: '1m', cost: () => 6, clock: new ManualTime(0) },
      fakeReader,
    )
    const decision = guard.check({}) as Decision
    expect(decision).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: Number.POSITIVE_INFINITY, remaining: 5 })
    const rejection = guard.reject({}, decision) as Rejection
    expect(rejection.status).toBe(429)
    expect(rejection.headers).not.toHaveProperty('Retry-After')
    expect(rejection.headers['RateLimit']).toMatch(/^"default";r=5;t=\d+$/)
    expect(JSON.parse(rejection.body)).toMatchObject({
      detail: 'This request costs more than the limit allows. Trying again does not help.',
    })
    expect(new ThrottledError(rejection).message).toBe('This request costs more than the limit allows. Trying again does not help.')
    expect(upgradeRejection(rejection)).not.toMatch(/retry-after|undefined|Infinity/i)
  })

  test('takes nothing, starts no cooldown, and leaves others alone', () => {
    const throttler = scene().node({ limit: 5, interval: '1m', cooldown: '1h' }, { alone: true })
    for (let i = 0; i < 10; i++) expect(throttler.check('a', 5.000001).allowed).toBe(false)
    expect(snapshot(throttler).blocked).toEqual([])
    expect(throttler.check('a', 5)).toMatchObject({ allowed: true, remaining: 0 })
    // Full as well: it does not fit later either.
    expect(throttler.check('a', 1e308).retryAfterMs).toBe(Number.POSITIVE_INFINITY)
    expect(throttler.check('a', 1).retryAfterMs).toBeLessThan(Number.POSITIVE_INFINITY)
    expect(throttler.check('a', 6)).toMatchObject({ reason: 'cooldown', retryAfterMs: Number.POSITIVE_INFINITY })
  })

  test('never fits although another policy rejects it for long', () => {
    const throttler = scene().node(
      [
        { name: 'small', limit: 2, interval: '1s' },
        { name: 'long', limit: 10, interval: '1d' },
      ],
      { alone: true },
    )
    adapterOf(throttler).decide(['k', 'k'], [1, 10])
    const decision = adapterOf(throttler).decide(['k', 'k'], [3, 1])
    expect(decision).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
    expect(decision.policy?.name).toBe('small')
    expect(retryAfterSeconds(decision)).toBeUndefined()
  })

  test('passes in a dry run, uncounted', () => {
    const throttler = scene().node({ limit: 5, interval: '1m', dryRun: true }, { alone: true })
    expect(throttler.check('a', 6)).toMatchObject({ allowed: true, dryRun: true, reason: 'limit', retryAfterMs: 0, cost: 0, remaining: 5 })
  })

  test('never fits while the store is away either, whatever is chosen for that', async () => {
    for (const failMode of ['open', 'share', 'closed'] as const) {
      const { world, node, store, close } = scene()
      const throttler = node({ limit: 60, interval: '1h', failMode })
      throttler.start()
      throttler.on('storeDown', () => {})
      await world.run(100)
      store.health = 'rejecting'
      await world.run(2_000)
      expect(throttler.state).toBe('storeDown')
      expect(throttler.check('a', 61), failMode).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
      expect(throttler.check('a', 1).allowed).toBe(failMode !== 'closed')
      store.health = 'up'
      await close()
    }
  })
})

test('a policy takes limits up to the largest safe integer, and durations up to a thousand years', () => {
  const { node } = scene()
  const code = (policy: object) => thrownBy(() => node(policy as PolicyOptions<never>)).code
  expect(code({ limit: 2 ** 53, interval: '1m' })).toBe('WEIR_INVALID_OPTION')
  expect(code({ limit: 1, interval: 1e308 })).toBe('WEIR_INVALID_OPTION')
  expect(code({ limit: 1, interval: '1m', cooldown: 8.64e15 })).toBe('WEIR_INVALID_OPTION')
  expect(code({ limit: 5, interval: '1m', cost: 5.5 })).toBe('WEIR_INVALID_OPTION')
  const throttler = node({ limit: MOST, interval: '1000y' as '1d' }, { alone: true })
  expect(throttler.check('a', MOST)).toMatchObject({ allowed: true, remaining: 0 })
  expect(throttler.check('a')).toMatchObject({ allowed: false })
  throttler.block('a', '1000y' as '1d')
  const { retryAfterMs } = throttler.check('a')
  expect(new Date(Date.now() + retryAfterMs).getTime()).not.toBeNaN()
})

test('charges without bounds, with units refunded in between, leave a key full', async () => {
  const { node, world } = scene()
  const throttler = node({ limit: 10, interval: '1h' }, { alone: true })
  const decision = throttler.check('a')
  for (let i = 0; i < 50; i++) {
    throttler.charge(decision, Number.MAX_VALUE)
    throttler.refund(decision, 1)
  }
  await world.run(10)
  expect(throttler.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
})
