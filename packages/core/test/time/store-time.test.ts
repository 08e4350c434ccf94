import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import type { Policy } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { calendar } from '../../src/options/calendar.ts'
import { StoreTime } from '../../src/time/store-time.ts'
import { type Node, offer, scene } from '../support/nodes.ts'
import { EPOCH, type World } from '../support/world.ts'

const WALL = 1_800_000_000_000

describe('the store’s clock, as a node estimates it', () => {
  test('is the own wall clock until the store has answered', () => {
    const time = new StoreTime(WALL, 100)
    expect(time.measured).toBe(false)
    expect(time.at(350)).toBe(WALL + 250)
  })

  test('is taken over at once with the first answer, within half the round trip', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e7, max: 1e7 }), fc.nat({ max: 200 }), fc.nat({ max: 200 }), (off, there, back) => {
        const time = new StoreTime(WALL, 0)
        time.observe(1_000, 1_000 + there + back, WALL + off + 1_000 + there)
        expect(time.measured).toBe(true)
        const error = time.at(5_000) - (WALL + off + 5_000)
        expect(Math.abs(error)).toBeLessThanOrEqual((there + back) / 2)
      }),
    )
  })

  test('a worse measurement that agrees changes nothing', () => {
    const time = new StoreTime(WALL, 0)
    time.observe(1_000, 1_002, WALL + 1_001)
    time.observe(2_000, 2_400, WALL + 2_390)
    expect(time.at(10_000)).toBe(WALL + 10_000)
  })

  test('a better one moves it, slowly', () => {
    const time = new StoreTime(WALL, 0)
    time.observe(1_000, 1_400, WALL + 1_390)
    const before = time.at(2_000)
    time.observe(1_999, 2_000, WALL + 1_999.5)
    expect(time.at(2_000)).toBeCloseTo(before, 6)
    expect(time.at(60_000)).toBeCloseTo(WALL + 60_000, 6)
  })

  test('a clock that shows whole milliseconds moves it by nothing, whenever it is read', () => {
    const time = new StoreTime(WALL, 0)
    for (let now = 1_000; now < 60_000; now += 333.3) {
      time.observe(now, now, WALL + Math.floor(now + 0.7))
      expect(time.offsetAt(now)).toBe(WALL)
      expect(time.uncertainty(now)).toBeLessThanOrEqual(1.5)
    }
  })

  test('one that contradicts it means that the store’s clock stepped: it follows, a tenth of the time that passes', () => {
    const time = new StoreTime(WALL, 0)
    time.observe(1_000, 1_001, WALL + 1_000.5)
    time.observe(2_000, 2_050, WALL + 2_025 + 2_000)
    expect(time.at(2_050)).toBeCloseTo(WALL + 2_050, 6)
    expect(time.at(12_050)).toBeCloseTo(WALL + 12_050 + 1_000, 6)
    expect(time.at(22_050)).toBeCloseTo(WALL + 22_050 + 2_000, 6)
    expect(time.at(32_050)).toBeCloseTo(WALL + 32_050 + 2_000, 6)
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])('%s is no time', (bad) => {
    const time = new StoreTime(WALL, 0)
    time.observe(0, 1, bad)
    expect(time.measured).toBe(false)
    expect(time.at(10)).toBe(WALL + 10)
  })
})

const measurement = fc.record({
  wait: fc.integer({ min: 1, max: 5_000 }),
  trip: fc.nat({ max: 400 }),
  step: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: -30_000, max: 30_000 }) }),
})

/** Calls `then` after each of several measurements, of a store whose clock steps now and then. */
function measure(list: readonly { wait: number; trip: number; step: number }[], then: (time: StoreTime, now: number) => void): void {
  const time = new StoreTime(WALL, 0)
  let now = 0
  let store = WALL
  for (const { wait, trip, step } of list) {
    now += wait + trip
    store += step
    time.observe(now - trip, now, store + now - trip / 2)
    then(time, now)
  }
}

test('after the first answer it never goes back, nor stands still, whatever is measured', () => {
  fc.assert(
    fc.property(fc.array(measurement, { minLength: 2, maxLength: 30 }), (list) => {
      let last: { now: number; at: number } | undefined
      measure(list, (time, now) => {
        for (const later of [0, 1, 10]) {
          const at = time.at(now + later)
          if (last !== undefined && now + later > last.now) {
            const passed = now + later - last.now
            expect(at - last.at).toBeGreaterThanOrEqual(passed * 0.89)
            expect(at - last.at).toBeLessThanOrEqual(passed * 1.11)
          }
          if (later === 0) last = { now, at }
        }
      })
    }),
  )
})

test('a process that joins others which are ahead never goes back either', () => {
  const heard = fc.record({
    wait: fc.integer({ min: 1, max: 5_000 }),
    step: fc.integer({ min: -30_000, max: 30_000 }),
    ahead: fc.nat(30_000),
  })
  fc.assert(
    fc.property(fc.array(heard, { minLength: 2, maxLength: 30 }), (list) => {
      const time = new StoreTime(WALL, 0)
      let [now, store] = [0, WALL]
      for (const { wait, step, ahead } of list) {
        const before = time.measured ? time.at(now) : Number.NEGATIVE_INFINITY
        now += wait
        store += step
        time.observe(now - 2, now, store + now - 1, ahead)
        expect(time.at(now)).toBeGreaterThanOrEqual(before + wait * 0.89)
      }
    }),
  )
})

test('when it will show a time is foreseen to the microsecond, also while it is being corrected', () => {
  fc.assert(
    fc.property(fc.array(measurement, { minLength: 1, maxLength: 8 }), fc.double({ min: 0, max: 1e6, noNaN: true }), (list, ahead) => {
      measure(list, (time, now) => {
        const wanted = time.at(now) + ahead
        const when = time.monotonicAt(wanted)
        expect(when).toBeGreaterThanOrEqual(now - 0.01)
        expect(time.at(when)).toBeCloseTo(wanted, 2)
      })
    }),
  )
})

describe('through a throttler', () => {
  const policy = { limit: 10, interval: 1_000 } as const

  test.each([-1_700, 1_700])('a node whose clock is off by %d ms begins its intervals with the others', async (offset) => {
    const { world, node, close } = scene()
    const wrong = node(policy, { offset })
    wrong.start()
    await world.runTo(1_950)
    expect(wrong.check('a').resetAfterMs).toBeGreaterThanOrEqual(offset > 0 ? 0 : 49)
    await world.runTo(5_000)
    world.stall(1)
    expect(wrong.check('a').resetAfterMs).toBe(999)
    await close()
  })

  test.each([-3_600_000, 3_600_000])(
    'a node whose clock is off by an hour at its start allows the limit in each interval',
    async (offset) => {
      const { world, node, close } = scene()
      const wrong = node(policy, { offset })
      offer(wrong, 'a', 5)
      await world.run(10)
      for (let interval = 1; interval < 4; interval++) {
        await world.runTo(interval * 1_000 + 10)
        expect(offer(wrong, 'a', 50)).toBe(10)
      }
      await close()
    },
  )

  test.each(['fixed', 'sliding'] as const)(
    'a node whose clock is ahead, and which counted before the first answer, counts where the others do (%s)',
    async (window) => {
      for (const offset of [1_000, 1_700, 5_400, 3_600_000]) {
        const { world, node, store, close } = scene()
        store.roundTrip = 20
        const right = node({ ...policy, limit: 100, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() })
        right.start()
        await world.runTo(100)
        const wrong = node({ ...policy, limit: 100, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }, { offset })
        const early = wrong.check('a')
        expect(offer(wrong, 'a', 30)).toBe(30)
        await world.run(100)
        let allowed = 31
        // Another request makes the process update the key, as the next request to a busy key does at once.
        allowed += offer(wrong, 'a', 1)
        wrong.refund(early)
        for (let wait = 0; wait < 600; wait += 60) {
          await world.run(60)
          allowed += offer(right, 'a', 10)
        }
        // The refunded unit is free again, and no other.
        expect(allowed).toBe(101)
        // None of these units count later, at the time that its clock had shown.
        for (let interval = 1; interval < 8; interval++) {
          await world.runTo(interval * 2_000 + 1)
          expect(offer(interval % 2 === 0 ? wrong : right, 'a', 300)).toBe(100)
        }
        await close()
      }
    },
  )

  test('a node whose clock is ahead, and which throttled without its store through several intervals, sends each unit once', async () => {
    const { world, node, store, close } = scene()
    store.health = 'rejecting'
    const wrong = node({ ...policy, limit: 100, failMode: 'open' }, { offset: 3_000 })
    const [rule] = wrong.policies as [Policy]
    // Its own intervals 3, 4 and 5. Then the store's intervals from 2 on.
    for (let interval = 0; interval < 3; interval++) {
      await world.runTo(interval * 1_000 + 500)
      expect(offer(wrong, 'a', 30)).toBe(30)
    }
    store.health = 'up'
    const booked: number[] = []
    for (let interval = 3; interval < 9; interval++) {
      await world.runTo(interval * 1_000 + 500)
      booked.push(store.total(rule, 'a', EPOCH + (interval - 1) * 1_000).taken)
      if (interval < 7) expect(offer(wrong, 'a', 25)).toBe(25)
    }
    await close()
    expect(booked).toEqual([30, 55, 55, 25, 25, 0])
  })

  describe.each([
    ['minutes', '1m'],
    ['days of a calendar', calendar('day', { timeZone: 'Pacific/Auckland' })],
  ] as const)('quota taken ahead, in %s', (_what, interval) => {
    const rule = { limit: 10, interval, coordination: 'leased', storeTimeout: '5s' } as const
    const allowedOf = async (throttler: Node, count: number, world: World): Promise<number> => {
      const decisions = Promise.all(Array.from({ length: count }, () => throttler.checkAsync('a')))
      await world.run(1_000)
      return (await decisions).filter(({ allowed }) => allowed).length
    }

    test.each([1_000, 70_000, 3_600_000, 5 * 86_400_000, -70_000, -5 * 86_400_000])(
      'a request that comes before the first answer waits for two of them, by a clock that is off by %d ms',
      async (offset) => {
        const { world, node, store, close } = scene()
        store.roundTrip = 20
        await world.runTo(59_990)
        const wrong = node(rule, { offset })
        let waited = Number.NaN
        void wrong.checkAsync('a').then(({ allowed }) => {
          if (allowed) waited = world.time - 59_990
        })
        await world.run(2_000)
        expect(waited).toBeLessThan(70)
        expect(store.requests.length).toBeLessThan(20)
        expect(await allowedOf(wrong, 30, world)).toBe(9)
        await world.run(60_000)
        // A minute has passed, but no day.
        expect(await allowedOf(wrong, 30, world)).toBe(interval === '1m' ? 10 : 0)
        await close()
      },
    )

    test('what was allowed without the store, by a clock that was ahead, counts in the interval of the others', async () => {
      const { world, node, store, close } = scene()
      store.health = 'rejecting'
      await world.runTo(60_500)
      const wrong = node({ ...rule, failMode: 'open' }, { offset: 5 * 86_400_000 })
      wrong.start()
      await world.run(1_000)
      await Promise.all([1, 2, 3].map(() => wrong.checkAsync('a')))
      wrong.reset('a')
      await world.run(1_000)
      const alone = await Promise.all([1, 2, 3, 4, 5, 6].map(() => wrong.checkAsync('a')))
      expect(alone.every(({ allowed }) => allowed)).toBe(true)
      store.health = 'up'
      await world.run(5_000)
      wrong.refund(alone[0] as Decision)
      await world.run(1_000)
      expect(await allowedOf(node(rule), 30, world)).toBe(5)
      await close()
    })
  })

  test.each([-60_000, 60_000, 500])('a step of the node’s wall clock by %d ms is not noticed', async (step) => {
    const { world, node, close } = scene()
    const throttler = node(policy)
    throttler.start()
    await world.runTo(300)
    expect(offer(throttler, 'a', 50)).toBe(10)
    throttler.clock.offset += step
    await world.runTo(900)
    expect(offer(throttler, 'a', 50)).toBe(0)
    await world.runTo(1_000)
    world.stall(1)
    expect(throttler.check('a').resetAfterMs).toBe(999)
    await close()
  })

  test('a step of the store’s clock neither repeats nor skips an interval at once', async () => {
    for (const step of [-2_000, 2_000]) {
      const { world, node, store, close } = scene()
      const throttler = node(policy)
      throttler.start()
      await world.runTo(300)
      store.clock.offset += step
      let allowed = 0
      for (let i = 0; i < 100; i++) {
        allowed += offer(throttler, 'a', 5)
        await world.run(100)
      }
      // Ten seconds: about ten intervals, one more or less.
      expect(allowed).toBeGreaterThanOrEqual(90)
      expect(allowed).toBeLessThanOrEqual(120)
      await close()
    }
  })

  test.each([
    ['fixed', 'when others have reported it', 3_900],
    ['sliding', 'when others have reported it', 3_900],
    ['fixed', 'before others have reported it', 1_510],
    ['sliding', 'before others have reported it', 1_510],
  ] as const)(
    'a node that starts after a step of the store’s clock keeps the limit with the others (%s, %s)',
    async (window, _when, startsAt) => {
      for (const step of [-3_600_000, 3_600_000]) {
        const { world, node, store, close } = scene()
        store.roundTrip = 2
        const rule = { ...policy, limit: 100, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }
        const old = node(rule)
        old.start()
        await world.runTo(1_500)
        store.clock.offset += step
        await world.runTo(startsAt)
        const young = node(rule)
        young.start()
        // The rest of the window in which it starts, and its first whole one, in which the processes receive each other's counts.
        await world.runTo(6_000)
        const before = [old, young].map((one) => snapshot(one).policies[0]?.allowed ?? 0)
        let allowed = 0
        for (let i = 0; i < 2_000; i++) {
          allowed += offer(i % 2 === 0 ? old : young, 'a', 1)
          await world.run(5)
        }
        expect(before).toEqual([0, 0])
        // Ten seconds, or eleven intervals if time is slewed forwards, and a part of one more.
        expect(allowed).toBeLessThanOrEqual(1_220)
        expect(allowed).toBeGreaterThanOrEqual(800)
        await close()
      }
    },
  )

  test('a node whose machine was suspended is with the others again at once, as they say that the store’s clock is right', async () => {
    const { world, node, close } = scene()
    const right = node(policy)
    right.start()
    const held = node(policy)
    const { clock } = held
    const passes = clock.monotonic.bind(clock)
    let suspended = 0
    clock.monotonic = () => passes() - suspended
    held.start()
    await world.runTo(1_500)
    world.stall(600_400)
    suspended = 600_400
    await world.run(3_000)
    const ends = [right, held].map((one) => one.check('a').resetAfterMs)
    expect(ends[0]).toBe(ends[1])
    await close()
  })
})
