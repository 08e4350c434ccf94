import fc from 'fast-check'
import { onTestFinished, vi } from 'vitest'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import type { ThrottlerOptions } from '../../src/throttler/options.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { TestStore } from './stores.ts'
import { World, type WorldClock } from './world.ts'

/** A throttler with its clock. */
export interface Node extends Throttler {
  readonly clock: WorldClock
}

export interface Scene {
  readonly world: World
  readonly store: TestStore
  /** Adds a process. Without `store` it shares the scene's. */
  node(policy: AnyPolicyOptions<never> | readonly AnyPolicyOptions<never>[], options?: NodeOptions): Node
  /** Closes processes (by default all), and lets the time pass that this takes. */
  close(...nodes: Throttler[]): Promise<void>
}

export type NodeOptions = Partial<Omit<ThrottlerOptions, 'policies' | 'clock' | 'store'>> & {
  readonly offset?: number
  readonly alone?: boolean
}

/** Random numbers that are the same in each run. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A world with a store and any number of processes. */
export function scene({ storeOffset = 0, seed = 1 }: { storeOffset?: number; seed?: number } = {}): Scene {
  const world = new World()
  const store = new TestStore(world, storeOffset)
  const made: Node[] = []
  return {
    world,
    store,
    node(policy, { offset = 0, alone = false, ...options } = {}) {
      const clock = world.clock({ offset, origin: 1_000 * (made.length + 1) })
      const policies = (Array.isArray(policy) ? policy : [policy]) as readonly AnyPolicyOptions[]
      const throttler = new Throttler({
        policies,
        clock,
        random: seeded(seed * 1_000 + made.length),
        // Each process gets a store value of its own, because throttlers with one value would be one process.
        ...(alone
          ? {}
          : {
              store: {
                kind: store.kind,
                decides: store.decides,
                reserves: true,
                coordinate: store.coordinate,
                open: (one) => store.open(one),
              },
            }),
        ...options,
      })
      const node = Object.assign(throttler, { clock })
      made.push(node)
      return node
    },
    async close(...nodes) {
      let closed = false
      const closing = Promise.all((nodes.length > 0 ? nodes : made).map((node) => node.close())).finally(() => {
        closed = true
      })
      // Code loads in real time, however long the virtual time is.
      await vi.dynamicImportSettled()
      for (let waited = 0; !closed && waited < 10_000; waited += 5) await world.run(waited === 0 ? 0 : 5)
      if (!closed) throw new Error('Not closed after ten seconds.')
      await closing
    },
  }
}

/** How many of `count` requests are allowed. */
export function offer(throttler: Throttler, key: string, count: number, cost?: number): number {
  let allowed = 0
  for (let i = 0; i < count; i++) if (throttler.check(key, cost).allowed) allowed++
  return allowed
}

/** The process warnings of this test, which are removed from the console. */
export function warnings(): Error[] {
  const heard: Error[] = []
  const listener = (warning: Error): void => {
    heard.push(warning)
  }
  process.on('warning', listener)
  onTestFinished(() => {
    process.off('warning', listener)
  })
  return heard
}

/** The error that a function throws. */
export function thrownBy(run: () => unknown): Error & { code?: string } {
  try {
    run()
  } catch (error) {
    return error as Error
  }
  throw new Error('Nothing was thrown.')
}

/** Strings that programs confuse with something else. */
export const hostileKeys: readonly string[] = [
  '',
  ' ',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  '\u0000',
  '\u0000\u0000',
  '\u0000overflow',
  '\u0000\u0000overflow',
  'overflow',
  '\ud800',
  '\udc00',
  '\ud83d',
  'a:b',
  'a',
  '{a}',
  'a\n',
  'a\r\n',
  'NaN',
  '0',
  '-0',
  '1e3',
  'undefined',
  'null',
  'ä',
  'a\u0308',
  'x'.repeat(70_000),
  `${'x'.repeat(70_000)}y`,
]

export const anyKey: fc.Arbitrary<string> = fc.oneof(fc.constantFrom(...hostileKeys), fc.string({ unit: 'binary' }), fc.string())
