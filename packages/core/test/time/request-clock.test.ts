import { describe, expect, test } from 'vitest'
import { createGuard } from '../../src/http/guard.ts'
import { nodeReader } from '../../src/http/request/node-reader.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { snapshot } from '../../src/inspect/snapshot.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { RequestClock, type RequestRuntime } from '../../src/time/request-clock.ts'
import { seeded } from '../support/nodes.ts'

/** A runtime as Workers are: nothing may be started outside of requests, and what a request starts ends with it. */
class Runtime implements RequestRuntime {
  wall = 1_800_000_000_000
  /** Timers of requests that are open. */
  readonly #timers = new Set<{ readonly at: number; readonly request: number; readonly callback: () => void }>()
  readonly #open = new Map<number, number>()
  #request = 0
  #last = 0
  slept = 0

  now(): number {
    return this.#request === 0 ? 0 : this.wall
  }

  sleep(callback: () => void, delay: number): unknown {
    if (this.#request === 0) throw new Error('Disallowed operation called within global scope.')
    this.slept++
    const request = this.#request
    const timer = { at: this.wall + Math.ceil(delay), request, callback: () => this.#within(request, callback) }
    this.#timers.add(timer)
    return timer
  }

  wake(timer: never): void {
    this.#timers.delete(timer)
  }

  waitUntil(promise: Promise<unknown>): void {
    const request = this.#request
    if (request === 0) throw new Error('Disallowed operation called within global scope.')
    this.#open.set(request, (this.#open.get(request) ?? 0) + 1)
    const done = (): void => this.#close(request)
    promise.then(done, done)
  }

  /** Runs a request. Its timers end with it, unless `waitUntil` keeps it open. */
  async request<T>(handle: () => T | Promise<T>): Promise<T> {
    const request = ++this.#last
    this.#open.set(request, 1)
    try {
      const result = this.#within(request, handle)
      for (let turn = 0; turn < 20; turn++) await this.#turn(request)
      return await result
    } finally {
      this.#close(request)
    }
  }

  /** Lets time pass for the requests that are open. */
  async pass(milliseconds: number): Promise<void> {
    for (const end = this.wall + milliseconds; this.wall < end; ) {
      this.wall++
      for (const timer of [...this.#timers]) if (timer.at <= this.wall && this.#timers.delete(timer)) timer.callback()
      for (let turn = 0; turn < 20; turn++) await undefined
    }
  }

  get timers(): number {
    return this.#timers.size
  }

  async #turn(request: number): Promise<void> {
    const before = this.#request
    this.#request = request
    await undefined
    this.#request = before
  }

  #within<T>(request: number, run: () => T): T {
    const before = this.#request
    this.#request = request
    try {
      return run()
    } finally {
      // Continuations of promises run within the same request.
      queueMicrotask(() => {
        this.#request = before
      })
    }
  }

  #close(request: number): void {
    const left = (this.#open.get(request) ?? 0) - 1
    this.#open.set(request, left)
    if (left <= 0) for (const timer of this.#timers) if (timer.request === request) this.#timers.delete(timer)
  }
}

describe('a clock that requests drive', () => {
  test('stands still outside of requests, and begins at 0 with the first', async () => {
    const runtime = new Runtime()
    const clock = new RequestClock(runtime)
    expect([clock.monotonic(), clock.stopped]).toEqual([0, true])
    expect(await runtime.request(() => [clock.monotonic(), clock.stopped, clock.now()])).toEqual([0, false, runtime.wall])
    runtime.wall += 500
    expect(await runtime.request(() => clock.monotonic())).toBe(500)
    // The wall clock is set back.
    runtime.wall -= 300
    expect(await runtime.request(() => clock.monotonic())).toBe(500)
    runtime.wall += 400
    expect(await runtime.request(() => clock.monotonic())).toBe(600)
  })

  test('sets no timer: the next request that reads the time calls what is due, in order', async () => {
    const runtime = new Runtime()
    const clock = new RequestClock(runtime)
    const called: string[] = []
    clock.setTimeout(() => called.push('b'), 200)
    clock.setTimeout(() => called.push('a'), 100)
    const cleared = clock.setTimeout(() => called.push('c'), 150)
    clock.clearTimeout(cleared)
    clock.clearTimeout(undefined)
    clock.setTimeout(() => called.push('d'), 5_000)
    expect(runtime.timers).toBe(0)
    await runtime.request(() => clock.monotonic())
    expect(called).toEqual([])
    runtime.wall += 1_000
    await runtime.request(() => clock.monotonic())
    expect(called).toEqual(['a', 'b'])
    runtime.wall += 10_000
    await runtime.request(() => clock.monotonic())
    expect(called).toEqual(['a', 'b', 'd'])
    expect(runtime.slept).toBe(0)
  })

  test('a timer that throws keeps no other one from running', async () => {
    const runtime = new Runtime()
    const clock = new RequestClock(runtime)
    const thrown: unknown[] = []
    const listener = (error: unknown): void => void thrown.push(error)
    const before = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', listener)
    const called: string[] = []
    clock.setTimeout(() => {
      throw new Error('of a listener')
    }, 1)
    clock.setTimeout(() => called.push('next'), 2)
    runtime.wall += 10
    await runtime.request(() => clock.monotonic())
    runtime.wall += 10
    await runtime.request(() => clock.monotonic())
    await new Promise((resolve) => setImmediate(resolve))
    process.off('uncaughtException', listener)
    for (const one of before) process.on('uncaughtException', one)
    expect(called).toEqual(['next'])
    expect(thrown).toEqual([expect.objectContaining({ message: 'of a listener' })])
  })

  test('defers to the end of the request, or to the next one if it ends earlier', async () => {
    const runtime = new Runtime()
    const clock = new RequestClock(runtime)
    const called: string[] = []
    clock.defer(() => called.push('outside'))
    await runtime.pass(50)
    expect(called).toEqual([])
    await runtime.request(() => clock.defer(() => called.push('inside')))
    await runtime.pass(1)
    expect(called).toEqual(['outside', 'inside'])
    expect(runtime.timers).toBe(0)
  })

  test('a request that waits runs the timers of all, and stays open until it is released', async () => {
    const runtime = new Runtime()
    const clock = new RequestClock(runtime)
    const called: number[] = []
    let release = (): void => {}
    await runtime.request(() => {
      release = clock.hold()
      clock.setTimeout(() => called.push(clock.monotonic()), 35)
    })
    await runtime.pass(60)
    expect(called).toHaveLength(1)
    expect(called[0]).toBeLessThanOrEqual(56)
    expect(runtime.timers).toBe(1)
    release()
    await runtime.pass(1)
    expect(runtime.timers).toBe(0)
  })
})

describe('a throttler that requests drive', () => {
  test('is made outside of requests, starts with the first one, and counts in the intervals of real time', async () => {
    const runtime = new Runtime()
    const clock = new RequestClock(runtime)
    const throttler = createThrottler({ policies: [{ limit: 3, interval: '10s', coordination: 'local' }], clock })
    throttler.start()
    expect(throttler.state).toBe('idle')
    // A decision outside of a request does not start it either.
    expect(throttler.check('other').allowed).toBe(true)
    expect(throttler.state).toBe('idle')
    runtime.wall = 1_800_000_009_000
    const decide = () => runtime.request(() => throttler.check('a'))
    const first = await decide()
    expect(throttler.state).toBe('local')
    expect(first.resetAfterMs).toBe(1_000)
    expect([first.allowed, (await decide()).allowed, (await decide()).allowed, (await decide()).allowed]).toEqual([true, true, true, false])
    runtime.wall += 1_000
    expect((await decide()).allowed).toBe(true)
    expect(snapshot(throttler).drivenBy).toBe('requests')
    expect(runtime.timers).toBe(0)
  })

  test('two of them share a limit through a store, although each request ends at once', async () => {
    const runtime = new Runtime()
    const store = memoryStore()
    const both = [0, 1].map((which) =>
      createThrottler({
        policies: [{ name: 'p', limit: 100, interval: '10s' }],
        clock: new RequestClock(runtime),
        store: { ...store, open: (node) => store.open(node) },
        random: seeded(which + 1),
      }),
    )
    let allowed = 0
    for (let i = 0; i < 400; i++) {
      const throttler = both[i % 2] as (typeof both)[number]
      if ((await runtime.request(() => throttler.check('a'))).allowed) allowed++
      await runtime.pass(5)
    }
    expect(both.map(({ state }) => state)).toEqual(['synced', 'synced'])
    expect(allowed).toBeGreaterThanOrEqual(100)
    expect(allowed).toBeLessThanOrEqual(105)
  })

  test("the adapters' default afterFreeze does not let requests wait after each pause", async () => {
    const runtime = new Runtime()
    const reader = { ...nodeReader, afterFreeze: 'sync' as const }
    const guard = createGuard({ key: 'ip', limit: 100, interval: '10s', store: memoryStore(), clock: new RequestClock(runtime) }, reader)
    const request = { method: 'GET', url: '/', headers: {}, socket: { remoteAddress: '192.0.2.1' } } as never
    for (let i = 0; i < 5; i++) {
      expect(await runtime.request(() => guard.check(request) instanceof Promise)).toBe(false)
      await runtime.pass(1_500)
    }
  })
})
