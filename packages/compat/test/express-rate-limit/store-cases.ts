import type { Options, Store } from 'express-rate-limit'
import { expect } from 'vitest'
import { ended, HOUR, windowAfter, withinWindow } from './support.ts'

/** A case of the suite of express-rate-limit that concerns its store. */
export interface Case {
  readonly name: string
  /** Fails unless the store behaves as the memory store of express-rate-limit. Each call of `store` makes a new one. */
  run(store: () => Store): Promise<void>
}

/** Longer than the calls of a case take, and short enough to wait for its end. */
const SHORT = 200

function started(store: Store, windowMs = HOUR): Store {
  store.init?.({ windowMs, limit: 5 } as Options)
  return store
}

const hits = async (store: Store, key: string): Promise<number> => (await store.increment(key)).totalHits

export const STORE_CASES: readonly Case[] = [
  {
    name: 'get returns the hits of a key and the end of its window',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      const info = await store.get?.('a')
      expect(info).toMatchObject({ totalHits: 1, resetTime: expect.any(Date) })
      expect(info?.resetTime?.getTime()).toBeGreaterThan(Date.now())
    },
  },
  {
    name: 'get returns undefined for a key without hits',
    async run(make) {
      expect(await started(make()).get?.('a')).toBeUndefined()
    },
  },
  {
    name: 'the first increment of a key returns 1',
    async run(make) {
      expect(await hits(started(make()), 'a')).toBe(1)
    },
  },
  {
    name: 'increment counts further hits, for each key alone',
    async run(make) {
      const store = started(make())
      expect([await hits(store, 'a'), await hits(store, 'a'), await hits(store, 'b'), await hits(store, 'a')]).toEqual([1, 2, 1, 3])
    },
  },
  {
    name: 'decrement takes one hit back',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      await store.increment('a')
      await store.decrement('a')
      expect(await hits(store, 'a')).toBe(2)
    },
  },
  {
    name: 'decrement stops at 0 hits',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      await store.decrement('a')
      await store.decrement('a')
      await expect.poll(() => store.get?.('a')).toMatchObject({ totalHits: 0 })
      expect(await hits(store, 'a')).toBe(1)
    },
  },
  {
    name: 'resetKey removes a key',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      expect(await store.get?.('a')).toBeDefined()
      await store.resetKey('a')
      expect(await store.get?.('a')).toBeUndefined()
    },
  },
  {
    name: 'a key counts from 1 after resetKey',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      await store.increment('b')
      await store.resetKey('a')
      expect([await hits(store, 'a'), await hits(store, 'b')]).toEqual([1, 2])
    },
  },
  {
    name: 'all keys count from 1 after resetAll',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      await store.increment('b')
      await store.resetAll?.()
      expect([await hits(store, 'a'), await hits(store, 'b')]).toEqual([1, 1])
    },
  },
  {
    name: 'shutdown ends the store, even twice',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      await store.shutdown?.()
      await store.shutdown?.()
    },
  },
  {
    name: 'all keys count from 1 after the window',
    async run(make) {
      const store = started(make(), SHORT)
      await windowAfter(SHORT)
      await store.increment('a')
      await store.increment('b')
      await ended(SHORT)
      expect([await hits(store, 'a'), await hits(store, 'b')]).toEqual([1, 1])
    },
  },
  {
    name: 'keys stay separate over several windows',
    async run(make) {
      const store = started(make(), SHORT)
      await store.increment('a')
      await ended(SHORT)
      await store.increment('a')
      await store.increment('b')
      const [one, two, three, other, four, areSame] = await withinWindow(SHORT, async () => {
        const before = [await hits(store, 'a'), await hits(store, 'a')] as const
        const [third, ofOther] = [await store.increment('a'), await store.increment('c')]
        return [...before, third.totalHits, ofOther.totalHits, await hits(store, 'a'), third === ofOther] as const
      })
      expect([one, two, three, four]).toEqual([1, 2, 3, 4])
      expect([other, areSame]).toEqual([1, false])
    },
  },
  {
    name: 'a second init with the same options keeps the hits',
    async run(make) {
      const store = started(make())
      await store.increment('a')
      started(store)
      expect(await hits(store, 'a')).toBe(2)
    },
  },
  {
    name: 'a store counts before init',
    async run(make) {
      const store = make()
      await store.increment('a')
      expect(await store.get?.('a')).toBeDefined()
    },
  },
  {
    name: 'a window of less than 30 ms is accepted',
    async run(make) {
      expect(await hits(started(make(), 29), 'a')).toBe(1)
    },
  },
  {
    name: 'the window of a key begins with its first hit',
    async run(make) {
      const store = started(make())
      const first = await store.increment('a')
      const { resetTime: one = new Date() } = { ...first }
      const end = one.getTime()
      const began = Date.now()
      while (Date.now() < began + 100) await new Promise((resolve) => setTimeout(resolve, 10))
      const { resetTime: two = new Date(0) } = await store.increment('b')
      expect(two.getTime()).toBeGreaterThan(end + 50)
    },
  },
  {
    name: 'hits above the limit are counted',
    async run(make) {
      const store = started(make())
      for (let hit = 1; hit <= 6; hit++) await store.increment('a')
      expect(await hits(store, 'a')).toBe(7)
    },
  },
  {
    name: 'a store counts after shutdown',
    async run(make) {
      const store = started(make())
      await store.shutdown?.()
      expect(await hits(store, 'a')).toBe(1)
    },
  },
]
