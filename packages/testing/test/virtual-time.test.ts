import { createThrottler, leakyBucket, memoryStore } from '@weir/core'
import { Hub } from '@weir/core/memory'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock, NodeClock, VirtualTime } from '../src/index.ts'
import { EventQueue } from '../src/time/event-queue.ts'

describe('the event queue', () => {
  it('hands out events by time, and by order of queueing among equals, whatever was taken out', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.boolean())), (plan) => {
        const queue = new EventQueue()
        const kept: number[][] = []
        const events = plan.map(([at, drop], order) => ({ event: queue.add(at, () => {}, true), at, drop, order }))
        for (const { event, at, drop, order } of events) {
          if (drop) queue.remove(event)
          else kept.push([at, order])
        }
        kept.sort((one, other) => (one[0] as number) - (other[0] as number) || (one[1] as number) - (other[1] as number))
        const seen: number[][] = []
        for (let event = queue.take(); event !== undefined; event = queue.take()) seen.push([event.at, event.sequence])
        expect(seen).toEqual(kept)
        expect(queue.size).toBe(0)
      }),
    )
  })
})

describe('a manual clock', () => {
  it('stands still until it is told to move, and runs timers in order', async () => {
    const clock = manualClock()
    const seen: string[] = []
    clock.setTimeout(() => seen.push('b'), 20)
    clock.setTimeout(() => seen.push('a'), 10)
    clock.setTimeout(() => seen.push('c'), 20)
    const cancelled = clock.setTimeout(() => seen.push('never'), 15)
    clock.clearTimeout(cancelled)
    expect(clock.monotonic()).toBe(0)
    await clock.advance(19)
    expect(seen).toEqual(['a'])
    await clock.advance(1)
    expect(seen).toEqual(['a', 'b', 'c'])
    expect(clock.monotonic()).toBe(20)
  })

  it('is moved by a duration, and by nothing else', async () => {
    const clock = manualClock()
    await clock.advance('1m')
    expect(clock.monotonic()).toBe(60_000)
    for (const wrong of ['60', -1, Number.NaN, undefined])
      await expect(clock.advance(wrong as never)).rejects.toMatchObject({ code: 'WEIR_INVALID_OPTION' })
    expect(clock.monotonic()).toBe(60_000)
  })

  it('waits for code that a throttler loads when it first needs it', async () => {
    const clock = manualClock()
    const policies = [{ limit: 10, interval: '1s', algorithm: leakyBucket(), coordination: 'local' }] as const
    const throttler = createThrottler({ clock, policies })
    let gone = 0
    for (let i = 0; i < 5; i++) void throttler.schedule('a', () => gone++)
    await clock.advance(0)
    expect(gone).toBe(1)
    await clock.advance(250)
    expect(gone).toBe(3)
  })

  it('settles promises between two events', async () => {
    const clock = manualClock()
    const seen: string[] = []
    clock.setTimeout(() => {
      Promise.resolve()
        .then(() => {})
        .then(() => seen.push('settled'))
    }, 10)
    clock.setTimeout(() => seen.push('next'), 10)
    await clock.advance(10)
    expect(seen).toEqual(['settled', 'next'])
  })

  it('need not be moved for what is only put off, such as the last exchange of a throttler', async () => {
    const clock = manualClock()
    const hub = new Hub(clock)
    const policies = [{ name: 'user', limit: 2, interval: '1h' }] as const
    const [one, two] = [0, 1].map(() => createThrottler({ clock, store: memoryStore(hub), policies }).start())
    one?.check('a')
    one?.check('a')
    await one?.close()
    expect(clock.monotonic()).toBe(0)
    await clock.advance(2000)
    expect(two?.check('a').allowed).toBe(false)
    await two?.close()
  })

  it('steps its wall clock alone', async () => {
    const clock = manualClock()
    const before = clock.now()
    clock.step(-5000)
    expect(clock.now()).toBe(before - 5000)
    expect(clock.monotonic()).toBe(0)
  })
})

describe("a node's clock", () => {
  it('shows whole milliseconds on the wall and fractions otherwise', async () => {
    const time = new VirtualTime()
    const clock = new NodeClock(time, { offset: 3, origin: 7 })
    await time.runUntil(0.75)
    expect(clock.now()).toBe(time.epoch + 3)
    expect(clock.monotonic()).toBe(7.75)
  })

  it('drifts, its timers too', async () => {
    const time = new VirtualTime()
    const clock = new NodeClock(time, { drift: 0.25 })
    let firedAt = 0
    clock.setTimeout(() => {
      firedAt = time.now
    }, 100)
    await time.runUntil(100)
    expect(firedAt).toBe(80)
    expect(clock.monotonic()).toBe(125)
  })

  it('holds timers while the event loop is stalled', async () => {
    const time = new VirtualTime()
    const clock = new NodeClock(time)
    let firedAt = 0
    clock.setTimeout(() => {
      firedAt = time.now
    }, 10)
    clock.stall(500)
    await time.runUntil(1000)
    expect(firedAt).toBe(500)
  })

  it('fires nothing after it was stopped', async () => {
    const time = new VirtualTime()
    const clock = new NodeClock(time)
    let fired = 0
    clock.setTimeout(() => fired++, 10)
    clock.stop()
    clock.setTimeout(() => fired++, 10)
    clock.defer(() => fired++)
    await time.runUntil(100)
    expect(fired).toBe(0)
  })

  it('clears a timer that never was without harm, as Node.js does', () => {
    expect(() => new NodeClock(new VirtualTime()).clearTimeout(undefined)).not.toThrow()
  })
})

it('options that a clock does not have are rejected, with those that were meant', () => {
  expect(() => manualClock({ offst: 5 } as never)).toThrow(
    'Unknown option "offst". Did you mean "offset"? manualClock() has: offset, drift',
  )
  expect(() => manualClock(5 as never)).toThrow('Option "manualClock" is 5. Use options such as { offset: 1000 }.')
})
