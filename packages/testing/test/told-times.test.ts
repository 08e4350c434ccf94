import {
  type Algorithm,
  createThrottler,
  type Decision,
  fixedWindow,
  leakyBucket,
  type PolicyOptions,
  slidingCounter,
  slidingLog,
  slidingWindow,
  type Throttler,
  tokenBucket,
} from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { expect, test } from 'vitest'
import { NodeClock, SeededRandom, simulatedStore, VirtualTime } from '../src/index.ts'

const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  'fixedWindow()': fixedWindow(),
  "fixedWindow({ start: 'first-request' })": fixedWindow({ start: 'first-request' }),
  'slidingWindow()': slidingWindow(),
  'slidingWindow({ subWindows: 7 })': slidingWindow({ subWindows: 7 }),
  'slidingCounter()': slidingCounter(),
  'slidingLog()': slidingLog(),
  'tokenBucket()': tokenBucket(),
  'tokenBucket({ burst: 4.5 })': tokenBucket({ burst: 4.5 }),
  'tokenBucket({ warmUp })': tokenBucket({ warmUp: '2s' }),
  'leakyBucket()': leakyBucket(),
}

const COORDINATIONS = ['local', 'background', 'periodic', 'leased', 'central'] as const
type Coordination = (typeof COORDINATIONS)[number]

/** Messages take half a millisecond, 20 % more or less. */
const LATENCY = ({ next }: { next(): number }) => 0.5 * (0.8 + 0.4 * next())
/** The longest round trip, in milliseconds. */
const ROUND_TRIP = 1.2

interface Scene {
  readonly random: SeededRandom
  readonly policy: PolicyOptions & { readonly limit: number; readonly interval: number; readonly cooldown: number }
  readonly most: number
  /** Lets time pass by the clock of the process under test. Requests for another key keep the processes and the store busy. */
  pass(milliseconds: number): Promise<void>
  check(cost: number): Promise<Decision>
  peek(cost: number): Decision
  readonly steps: string[]
  close(): Promise<void>
}

async function scene(algorithm: Algorithm, coordination: Coordination, seed: string): Promise<Scene> {
  const random = new SeededRandom(seed)
  const oneOf = <T>(choices: readonly T[]): T => choices[random.below(choices.length)] as T
  const interval = oneOf([600, 1000, 7777, 60_000])
  const limit = oneOf([1, 2, 2.5, 5, 10, 30, 300])
  const cooldown = random.next() < 0.3 ? 1 + random.below(2 * interval) : 0
  const policy = { name: 'p', algorithm, coordination, limit, interval, cooldown } satisfies PolicyOptions
  const time = new VirtualTime(random.below(interval))
  const store = simulatedStore({
    time,
    random: new SeededRandom(`${seed}/store`),
    network: { latency: () => LATENCY({ next: () => random.next() }) },
  })
  // With a drift of 0.1 ms each second, no process could measure a minute to the millisecond.
  const drift = (random.next() - 0.5) * 2e-6
  const clocks = [drift, -drift].map((drift) => new NodeClock(time, { offset: random.below(5_000), drift, origin: random.next() * 1e6 }))
  const nodes = clocks.map((clock) =>
    createThrottler({ clock, policies: [policy], ...(coordination !== 'local' && { store }), random: () => random.next() }).start(),
  )
  for (const one of nodes) await adapterOf(one).inspected.coordinator?.loading
  if (coordination !== 'local') await store.opened()
  await time.runUntil(time.now + 2_500)
  const [asked, other] = nodes as [Throttler, Throttler]
  const [clock] = clocks as [NodeClock]
  const steps: string[] = []
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    let settled = false
    void promise.finally(() => (settled = true))
    await time.settled()
    while (!settled) await time.runUntil(Math.max(time.now, Math.min(time.nextAt, time.now + 100)))
    return promise
  }
  return {
    random,
    policy,
    most: algorithm.most?.(limit) ?? limit,
    steps,
    async pass(milliseconds) {
      steps.push(`wait ${milliseconds}`)
      const until = clock.monotonic() + milliseconds
      const pauses = Math.min(5, Math.floor(milliseconds / 25))
      for (let pause = 0; pause < pauses; pause++) {
        await time.runUntil(time.now + (milliseconds / (pauses + 1)) * 0.99)
        for (const node of [asked, other]) void node.checkAsync('other').catch(() => {})
      }
      while (clock.monotonic() < until) await time.runUntil(time.now + Math.max(1e-9, (until - clock.monotonic()) / (1 + drift)))
    },
    async check(cost) {
      const decision = await settle(asked.checkAsync('key', cost))
      steps.push(`${cost} ${decision.allowed ? '✓' : `✗ ${decision.reason} ${decision.retryAfterMs}`}`)
      return decision
    },
    peek: (cost) => asked.peek('key', cost),
    async close() {
      await settle(Promise.all(nodes.map((node) => node.close())))
    },
  }
}

function pairs(): [name: string, coordination: Coordination][] {
  return Object.entries(ALGORITHMS).flatMap(([name, algorithm]) =>
    COORDINATIONS.flatMap((coordination): [string, Coordination][] => {
      // In this pair a request waits for its turn, and is rejected only if it can't get one.
      if (algorithm.delay !== undefined && coordination === 'background') return []
      try {
        void createThrottler({
          policies: [{ name: 'p', algorithm, coordination, limit: 1, interval: 1000 }],
          ...(coordination !== 'local' && { store: simulatedStore({ time: new VirtualTime() }) }),
        }).close()
        return [[name, coordination]]
      } catch {
        return []
      }
    }),
  )
}

const RUNS = 6
const ROUNDS = 15

async function rounds(name: string, coordination: Coordination, round: (scene: Scene, cost: number) => Promise<void>): Promise<void> {
  for (let run = 0; run < RUNS; run++) {
    const here = await scene(ALGORITHMS[name] as Algorithm, coordination, `${name}/${coordination}/${run}`)
    const { random, policy, most } = here
    try {
      for (let step = 0; step < ROUNDS; step++) {
        await here.pass(
          random.below(random.next() < 0.2 ? 2 * policy.interval : Math.ceil(policy.interval / 10)) +
            (random.next() < 0.5 ? random.next() : 0),
        )
        const kind = random.next()
        await round(here, kind < 0.4 ? Math.min(1, most) : kind < 0.8 ? Math.max(0.01, random.next() * most) : most)
      }
    } catch (error) {
      throw new Error(
        `${(error as Error).message}\nrun ${run}, limit ${policy.limit}, interval ${policy.interval}, cooldown ${policy.cooldown}: ${here.steps.slice(-30).join(', ')}`,
      )
    } finally {
      await here.close()
    }
  }
}

test.each(pairs())(
  '%s, %s: a rejected request fits after retryAfterMs, and not two milliseconds before',
  async (name, coordination) => {
    const asks = coordination === 'central' || coordination === 'leased'
    await rounds(name, coordination, async ({ check, peek, pass, random }, cost) => {
      const decision = await check(cost)
      if (decision.allowed || random.next() < 0.5) return
      expect(decision.retryAfterMs).toBeGreaterThan(0)
      // The store decides a request half a round trip later.
      const before = Math.max(0, decision.retryAfterMs - 2 - (asks ? ROUND_TRIP : 0))
      await pass(before)
      const early = asks ? await check(cost) : peek(cost)
      if (before > 0) expect(early.allowed, `allowed after ${before} of ${decision.retryAfterMs} ms`).toBe(false)
      await pass(asks && !early.allowed ? early.retryAfterMs : decision.retryAfterMs - before)
      const then = await check(cost)
      expect(then.allowed, `${then.reason}: rejected after a retryAfterMs of ${decision.retryAfterMs} ms, now ${then.retryAfterMs}`).toBe(
        true,
      )
    })
  },
  120_000,
)

test.each(pairs())(
  '%s, %s: all units are back after resetAfterMs, and not much before',
  async (name, coordination) => {
    const asks = coordination === 'central' || coordination === 'leased'
    await rounds(name, coordination, async ({ check, peek, pass, random, policy, most }, cost) => {
      const decision = await check(cost)
      if (random.next() < 0.6) return
      const { resetAfterMs } = decision
      // In the background a sliding window combines small counts until their span has left.
      const grain = 2 + (coordination === 'background' ? policy.interval / 6 : 0) + (asks ? ROUND_TRIP : 0)
      const before = Math.max(0, resetAfterMs - grain)
      await pass(before)
      if (before > 0 && !asks && decision.reason !== 'cooldown')
        expect(peek(most).allowed, `all is back after ${before} of ${resetAfterMs} ms`).toBe(false)
      await pass(resetAfterMs - before)
      const then = asks ? await check(most) : peek(most)
      expect(then.allowed, `${then.reason}: ${then.remaining} of ${most} are back after ${resetAfterMs} ms`).toBe(true)
    })
  },
  120_000,
)
