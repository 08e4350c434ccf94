import { beforeEach, describe, expect, test } from 'vitest'
import {
  type AcquireError,
  concurrency,
  createThrottler,
  type Decision,
  fixedWindow,
  leakyBucket,
  memoryStore,
  type Throttler,
  type WeirError,
} from '../../../src/index.ts'
import { snapshot } from '../../../src/inspect/index.ts'
import { adapterOf } from '../../../src/throttler/adapter-side.ts'
import { World, type WorldClock } from '../../support/world.ts'

let world: World
let clock: WorldClock
beforeEach(() => {
  world = new World()
  clock = world.clock()
})

const SLOTS = { limit: 2, algorithm: concurrency(), coordination: 'local' } as const

function make(policy: object = {}): Throttler {
  return createThrottler({ policies: [{ ...SLOTS, ...policy }], clock })
}

function allowed(throttler: Throttler, count: number, key = 'a'): Decision[] {
  const decisions = Array.from({ length: count }, () => throttler.check(key))
  expect(decisions.map((one) => one.allowed)).toEqual(decisions.map(() => true))
  return decisions
}

describe('requests in flight', () => {
  test('are at most the limit; time frees nothing, a release does', async () => {
    const throttler = make()
    const [first] = allowed(throttler, 2)
    await world.run(60_000)
    const rejected = throttler.check('a')
    expect(rejected).toMatchObject({ allowed: false, reason: 'limit', remaining: 0, resetAfterMs: 0, retryAfterMs: 0, cost: 0 })
    expect(throttler.check('b').allowed).toBe(true)
    throttler.release(first as Decision)
    expect(throttler.check('a')).toMatchObject({ allowed: true, remaining: 0, resetAfterMs: 0 })
    expect(throttler.check('a').allowed).toBe(false)
  })

  test('are released once, whatever is released again', async () => {
    const throttler = make()
    const [first, second] = allowed(throttler, 2)
    for (let again = 0; again < 3; again++) throttler.release(first as Decision)
    expect(throttler.peek('a').remaining).toBe(1)
    throttler.release(throttler.check('b'))
    allowed(throttler, 1)
    throttler.release(first as Decision)
    const rejected = throttler.check('a')
    throttler.release(rejected)
    expect(throttler.peek('a').remaining).toBe(0)
    throttler.release(second as Decision)
    expect(throttler.peek('a').remaining).toBe(1)
  })

  test('are released wherever they were taken: by the key, or by all that found no room when the table was full', async () => {
    const throttler = createThrottler({ policies: [SLOTS], clock, maxKeys: 100, overflow: 'shared' })
    const own = Array.from({ length: 100 }, (_, i) => throttler.check(`own ${i}`))
    for (let again = 0; again < 3; again++) {
      const shared = [throttler.check('a'), throttler.check('b')]
      expect(shared.map((one) => one.allowed)).toEqual([true, true])
      expect(throttler.check('c').allowed).toBe(false)
      for (const one of shared) throttler.release(one)
    }
    const early = throttler.check('a')
    for (const one of own) throttler.release(one)
    await world.run(10_000)
    // The key has its own record now.
    const [late] = allowed(throttler, 2)
    throttler.release(early)
    expect(throttler.check('a').allowed).toBe(false)
    throttler.release(late as Decision)
    expect(throttler.check('a').allowed).toBe(true)
    expect(snapshot(throttler).policies[0]?.inFlight).toBe(2)
  })

  test('take what they cost, and give that back', () => {
    const throttler = make({ limit: 1 })
    const parts = [0.1, 0.2, 0.3, 0.4].map((cost) => throttler.check('a', cost))
    expect(parts.every((one) => one.allowed)).toBe(true)
    expect(throttler.check('a', 0.1).allowed).toBe(false)
    for (const one of parts.reverse()) throttler.release(one)
    expect(throttler.peek('a').remaining).toBe(1)
    expect(throttler.check('a', 2)).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  })

  test('a refund gives back units of rates, not the slot; a charge takes none', () => {
    const throttler = createThrottler({
      policies: [
        { name: 'rate', limit: 5, interval: '1h', algorithm: fixedWindow(), coordination: 'local' },
        { name: 'slots', ...SLOTS },
      ],
      clock,
    })
    const decision = throttler.check('a')
    throttler.charge(decision, 2)
    expect(throttler.peek('a').parts.map(({ remaining }) => remaining)).toEqual([2, 1])
    throttler.refund(decision)
    expect(throttler.peek('a').parts.map(({ remaining }) => remaining)).toEqual([3, 1])
    throttler.release(decision)
    expect(throttler.peek('a').parts.map(({ remaining }) => remaining)).toEqual([3, 2])
  })

  test('a request that another level rejects holds no slot', () => {
    const rate = { name: 'rate', limit: 1, interval: '1h', coordination: 'local' } as const
    for (const policies of [
      [rate, { name: 'slots', ...SLOTS }],
      [{ name: 'slots', ...SLOTS }, rate],
    ] as const) {
      const throttler = createThrottler({ policies, clock })
      const decision = throttler.check('a')
      for (let i = 0; i < 5; i++) expect(throttler.check('a')).toMatchObject({ allowed: false, policy: { name: 'rate' } })
      throttler.release(decision)
      expect(throttler.peek('a').parts.find(({ policy }) => policy?.name === 'slots')?.remaining).toBe(2)
    }
  })

  test('rejects nobody in a dry run, and tells whom it would have rejected', () => {
    const throttler = make({ dryRun: true, limit: 1 })
    const first = throttler.check('a')
    const second = throttler.check('a')
    expect([first.dryRun, second.dryRun, second.allowed, second.cost]).toEqual([false, true, true, 0])
    throttler.release(second)
    expect(throttler.peek('a').remaining).toBe(0)
    throttler.release(first)
    expect(throttler.peek('a').remaining).toBe(1)
  })

  test('have the limit that the key is given', () => {
    const throttler = make()
    expect(throttler.check('a', { limit: 0 }).allowed).toBe(false)
    const many = Array.from({ length: 10 }, () => throttler.check('a', { limit: Number.POSITIVE_INFINITY }))
    expect(many.every((one) => one.allowed)).toBe(true)
    expect(throttler.check('a').allowed).toBe(false)
    for (const one of many) throttler.release(one)
    expect(throttler.check('a').allowed).toBe(true)
  })

  test('go on over an update of the limit, and begin anew with a reset', () => {
    const throttler = make()
    const before = allowed(throttler, 2)
    throttler.update([{ ...SLOTS, limit: 3 }])
    const [third] = allowed(throttler, 1)
    expect(throttler.check('a').allowed).toBe(false)
    throttler.reset('a')
    const after = allowed(throttler, 3)
    for (const one of [...before, third as Decision]) throttler.release(one)
    expect(throttler.check('a').allowed).toBe(false)
    for (const one of after) throttler.release(one)
    expect(throttler.peek('a').remaining).toBe(3)
  })

  test('a block is a block, and tells how long it lasts', () => {
    const throttler = make()
    throttler.block('a', '1m')
    expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 60_000 })
  })

  test('keys without one are forgotten', async () => {
    const throttler = make()
    const decisions = Array.from({ length: 100 }, (_, i) => throttler.check(`key ${i}`))
    await world.run(30_000)
    expect(adapterOf(throttler).inspected.limiters[0]?.table.size).toBe(100)
    for (const one of decisions.slice(1)) throttler.release(one)
    await world.run(30_000)
    expect(adapterOf(throttler).inspected.limiters[0]?.table.size).toBe(1)
    expect(adapterOf(throttler).inspected.limiters[0]?.meter.inFlight).toBe(1)
  })

  test('who comes when the throttler is closed is told so; releases are harmless', async () => {
    const throttler = make()
    const [one] = allowed(throttler, 1)
    await throttler.close()
    throttler.release(one as Decision)
  })
})

describe('the lease', () => {
  test('frees a slot that nobody has released, says so once, and what is released later frees nothing', async () => {
    const throttler = make({ algorithm: concurrency({ maxDuration: '10s' }) })
    const warnings: WeirError[] = []
    const expired: unknown[] = []
    throttler.on('warning', ({ error }) => warnings.push(error))
    throttler.on('slotExpired', (event) => expired.push(event))
    const [first] = allowed(throttler, 1)
    await world.run(6_000)
    const [second] = allowed(throttler, 1)
    await world.run(3_900)
    expect(throttler.check('a').allowed).toBe(false)
    await world.run(600)
    expect(expired).toEqual([{ policy: 'default', key: 'a', units: 1 }])
    const [third] = allowed(throttler, 1)
    expect(throttler.check('a').allowed).toBe(false)
    throttler.release(first as Decision)
    expect(throttler.check('a').allowed).toBe(false)
    throttler.release(second as Decision)
    throttler.release(third as Decision)
    expect(throttler.peek('a').remaining).toBe(2)
    allowed(throttler, 1, 'b')
    await world.run(20_000)
    expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_SLOT_EXPIRED'])
    expect(expired).toHaveLength(2)
  })

  test('is over by what a request finds, too, though no timer has run', () => {
    let now = 0
    const still = {
      ...clock,
      monotonic: () => now,
      now: () => now,
      setTimeout: () => ({}) as never,
      clearTimeout: () => {},
      defer: () => {},
    }
    const throttler = createThrottler({ policies: [{ ...SLOTS, limit: 1, algorithm: concurrency({ maxDuration: '1s' }) }], clock: still })
    throttler.on('warning', () => {})
    const first = throttler.check('a')
    for (now = 0; now < 1_000; now += 10) expect(throttler.check('a').allowed).toBe(false)
    now = 1_600
    expect(throttler.check('a').allowed).toBe(true)
    throttler.release(first)
    expect(throttler.check('a').allowed).toBe(false)
  })
})

describe('requests that wait', () => {
  test('go on with a release, without a timer', async () => {
    const throttler = make({ limit: 1 })
    const order: string[] = []
    const first = await throttler.acquire('a')
    const others = ['second', 'third'].map(async (name) => {
      const decision = await throttler.acquire('a')
      order.push(name)
      return decision
    })
    await world.run(1_000)
    expect([order, throttler.waiting]).toEqual([[], 2])
    throttler.release(first)
    const second = await (others[0] as Promise<Decision>)
    expect(order).toEqual(['second'])
    throttler.release(second)
    throttler.release(await (others[1] as Promise<Decision>))
    expect(throttler.peek('a').remaining).toBe(1)
  })

  test('schedule and wrap hold a slot as long as the function runs, also one that fails', async () => {
    const throttler = make({ limit: 1 })
    let running = 0
    let most = 0
    const run = async (fails: boolean) => {
      most = Math.max(most, ++running)
      await Promise.resolve()
      running--
      if (fails) throw new Error('no')
      return 'yes'
    }
    const wrapped = throttler.wrap(run, { key: 'a' })
    const results = await Promise.allSettled([
      throttler.schedule('a', () => run(false)),
      throttler.schedule('a', () => run(true)),
      wrapped(true),
      wrapped(false),
      throttler.schedule('a', () => {
        throw new Error('at once')
      }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled', 'rejected'])
    expect([most, throttler.peek('a').remaining, throttler.waiting]).toEqual([1, 1, 0])
  })

  test('time out, are aborted, and are told that they never fit; none of them holds a slot', async () => {
    const throttler = make({ limit: 1 })
    const first = await throttler.acquire('a')
    const abort = new AbortController()
    const reasons: string[] = []
    const waits = [
      throttler.acquire('a', { timeout: 100 }),
      throttler.acquire('a', { signal: abort.signal }),
      throttler.acquire('b', { cost: 2 }),
    ].map((one) => one.catch((error: AcquireError) => reasons.push(error.reason)))
    await waits[2]
    abort.abort()
    await world.run(200)
    await Promise.all(waits)
    expect(reasons).toEqual(['never-fits', 'aborted', 'timeout'])
    throttler.release(first)
    expect(throttler.peek('a').remaining).toBe(1)
  })

  test('go on when a lease is over, a limit is raised or a key reset', async () => {
    const throttler = make({ limit: 1, algorithm: concurrency({ maxDuration: '1s' }) })
    throttler.on('warning', () => {})
    await throttler.acquire('a')
    const second = throttler.acquire('a')
    await world.run(2_000)
    expect((await second).allowed).toBe(true)
    const third = throttler.acquire('a')
    await Promise.resolve()
    throttler.update([{ ...SLOTS, algorithm: concurrency({ maxDuration: '1s' }) }])
    await world.run(1)
    expect((await third).allowed).toBe(true)
    const fourth = throttler.acquire('a')
    throttler.reset('a')
    await world.run(1)
    expect((await fourth).allowed).toBe(true)
  })

  test('wait for a rate and a slot beside each other', async () => {
    const throttler = createThrottler({
      policies: [
        { name: 'rate', limit: 2, interval: 1_000, coordination: 'local' },
        { name: 'slots', limit: 1, algorithm: concurrency(), coordination: 'local' },
      ],
      clock,
    })
    const first = await throttler.acquire('a')
    const second = throttler.acquire('a')
    throttler.release(first)
    throttler.release(await second)
    const third = throttler.acquire('a')
    await world.run(1_000)
    throttler.release(await third)
    expect(throttler.peek('a').parts[1]?.remaining).toBe(1)
  })

  test('of a pace that are held give back their slot when they leave', async () => {
    const throttler = createThrottler({
      policies: [
        { name: 'pace', limit: 1, interval: 1_000, algorithm: leakyBucket({ burst: 3 }), coordination: 'local' },
        { name: 'slots', ...SLOTS },
      ],
      clock,
    })
    const first = await throttler.acquire('a')
    const abort = new AbortController()
    const second = throttler.acquire('a', { signal: abort.signal }).catch((error: AcquireError) => error.reason)
    await Promise.resolve()
    expect(throttler.peek('a').parts[1]?.remaining).toBe(0)
    abort.abort()
    expect(await second).toBe('aborted')
    expect(throttler.peek('a').parts[1]?.remaining).toBe(1)
    throttler.release(first)
    expect(throttler.peek('a').parts[1]?.remaining).toBe(2)
  })
})

describe('options', () => {
  test.each([
    [{ interval: '1m' }, /Remove "interval": it does not apply to concurrency\(\)/],
    [{ spans: 4 }, /Remove "spans"/],
    [{ cooldown: '1m' }, /Remove "cooldown"/],
    [{ coordination: 'background' }, /Option "coordination".*concurrency\(\) supports "local" and "leased"/],
    [{ coordination: 'periodic' }, /Option "coordination".*concurrency\(\) supports "local" and "leased"/],
    [{ coordination: 'central' }, /Option "coordination".*concurrency\(\) supports "local" and "leased"/],
    [{ coordination: 'leased' }, /Option "coordination" is "leased", which needs a "store". Add one/],
    [{ storeTimeout: '1s' }, /Remove "storeTimeout"/],
    [{ limit: 0 }, /Option "limit"/],
  ])('%j is rejected by name', (more, message) => {
    expect(() => createThrottler({ policies: [{ limit: 2, algorithm: concurrency(), ...more } as never] })).toThrow(message)
  })

  test('where they are counted has to be said where there is a store', () => {
    const policy = { limit: 2, algorithm: concurrency() } as const
    expect(() => createThrottler({ policies: [policy], store: memoryStore() })).toThrow(
      /sync in the background.*"local" \(.*\) or "leased" \(/,
    )
    const leased = { ...policy, coordination: 'leased', delay: () => 1 } as never
    expect(() => createThrottler({ policies: [leased], store: memoryStore() })).toThrow(/Option "delay"/)
  })

  test.each([0, '10ms', '30d', -1, 'soon', null, {}])('a lease of %j is rejected', (lease) => {
    expect(() => concurrency({ maxDuration: lease as never })).toThrow(/Option "maxDuration"/)
  })
})
