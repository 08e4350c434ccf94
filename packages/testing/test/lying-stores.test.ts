import {
  createThrottler,
  type Decision,
  memoryStore,
  type PolicyOptions,
  type Store,
  slidingCounter,
  slidingWindow,
  type Throttler,
  type WeirError,
} from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { Hub } from '@weir/core/memory'
import type { Announcement, Cell, LeaseReply, SyncReply } from '@weir/core/sync'
import { SEED } from '@weir/tooling/seed'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Lies, lyingStore, type ManualClock, manualClock, mutated, NONSENSE, SeededRandom } from '../src/index.ts'
import { loaded } from '../src/simulation/loaded.ts'

/** The number of times that a store has lost its data. */
let losses = 0

const unhandled: unknown[] = []
const hear = (reason: unknown): void => {
  unhandled.push(reason)
}
beforeEach(() => {
  process.on('unhandledRejection', hear)
  process.on('uncaughtException', hear)
})
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', hear)
  process.off('uncaughtException', hear)
  expect(unhandled.splice(0)).toEqual([])
})

const LIMIT = 20
const INTERVAL = 1_000
/** Moments of an interval at which requests arrive. */
const STEPS = 20
/** Every way of counting that syncs with a store. */
const POLICIES: readonly PolicyOptions[] = [
  { name: 'fixed', limit: LIMIT, interval: INTERVAL, cooldown: 300 },
  { name: 'sliding', limit: LIMIT, interval: INTERVAL, algorithm: slidingWindow() },
  { name: 'published', limit: LIMIT, interval: INTERVAL, coordination: 'periodic' },
  { name: 'two windows', limit: LIMIT, interval: INTERVAL, algorithm: slidingCounter(), coordination: 'periodic' },
  { name: 'leases', limit: LIMIT, interval: INTERVAL, coordination: 'leased', cooldown: 300 },
]

for (const policy of POLICIES) await loaded(policy)

interface Lied {
  readonly throttler: Throttler
  readonly clock: ManualClock
  readonly warnings: WeirError[]
  close(): Promise<void>
}

/** A process whose store sends invalid replies, and another process with an honest store. Each gets its own share of the requests. */
function lied(policy: PolicyOptions, lies: Lies): Lied & { readonly other: Throttler } {
  const clock = manualClock()
  const honest = memoryStore(new Hub(clock))
  const random = new SeededRandom('nodes')
  const make = (store: Store): Throttler =>
    createThrottler({ policies: [policy], store, clock, random: () => random.next(), closeTimeout: 50 })
  const throttler = make(lyingStore(honest, lies))
  const other = make(honest)
  const warnings: WeirError[] = []
  throttler.on('warning', ({ error }) => {
    warnings.push(error)
  })
  return {
    throttler,
    other,
    clock,
    warnings,
    async close() {
      const closing = Promise.all([throttler.close(), other.close()])
      await clock.advance(500)
      await closing
    },
  }
}

/** Sends requests for some intervals. Returns the most requests of a key that were allowed in any one of them. */
async function flood({ throttler, other, clock }: ReturnType<typeof lied>, intervals = 3): Promise<number> {
  // The first reply contains the store's time, which starts with an interval.
  throttler.start()
  other.start()
  await clock.advance(INTERVAL - (clock.now() % INTERVAL))
  // Counts by key, and by the interval of the decision, because a request that waited may be decided in the next one.
  const perCell = new Map<string, number>()
  const count = (key: string, { allowed }: Decision): void => {
    const cell = `${key} ${Math.floor(clock.now() / INTERVAL)}`
    if (allowed) perCell.set(cell, (perCell.get(cell) ?? 0) + 1)
  }
  let waiting = 0
  for (let step = 0; step < intervals * STEPS; step++) {
    for (const key of ['a', 'b', 'a', 'b', 'a', 'b']) {
      const decision = adapterOf(throttler).decideAsync([key], [1])
      if (decision instanceof Promise) {
        waiting++
        void decision.then((made) => {
          waiting--
          count(key, made)
        })
      } else count(key, decision)
      if (step % 5 === 0) void adapterOf(other).decideAsync([key], [1])
    }
    await clock.advance(INTERVAL / STEPS)
  }
  await clock.advance(INTERVAL / STEPS)
  expect(waiting, 'requests that still wait').toBe(0)
  return Math.max(0, ...perCell.values())
}

const eachResult = (change: (result: NonNullable<SyncReply['results'][number]>) => unknown) => (reply: SyncReply) => ({
  ...reply,
  results: reply.results.map((result) => result && change(result)),
})
const eachCell = (change: (cell: Cell) => unknown) => eachResult((result) => ({ ...result, cells: result.cells.map(change) }))
const eachLease = (change: (lease: LeaseReply) => unknown) =>
  eachResult((result) => (result.lease === undefined ? result : { ...result, lease: change(result.lease) }))
const inHeartbeat = (change: (heartbeat: NonNullable<SyncReply['heartbeat']>) => object) => (reply: SyncReply) => ({
  ...reply,
  ...(reply.heartbeat && { heartbeat: change(reply.heartbeat) }),
})

/** Wrong replies in the right form, which no check can detect. */
const SMOOTH: readonly [string, Lies][] = [
  ['nobody has taken anything', { reply: eachCell((cell) => ({ ...cell, taken: 0, given: 0 })) }],
  ['everybody has taken everything', { reply: eachCell((cell) => ({ ...cell, taken: Number.MAX_SAFE_INTEGER, given: 0 })) }],
  ['everything was refunded', { reply: eachCell((cell) => ({ ...cell, taken: 1e15, given: 1e15 })) }],
  [
    'now everything, now nothing',
    (() => {
      let turn = 0
      return {
        reply: eachCell((cell) => {
          turn++
          return turn % 2 === 0 ? { ...cell, taken: 2 ** 53 - 1, given: 0 } : { ...cell, taken: turn, given: turn }
        }),
      }
    })(),
  ],
  ['there are a million nodes', { reply: inHeartbeat((heartbeat) => ({ ...heartbeat, nodes: 1_000_000 })) }],
  ['its data is lost at each heartbeat', { reply: inHeartbeat((heartbeat) => ({ ...heartbeat, generation: `${++losses}` })) }],
  ['no part was exchanged', { reply: (reply) => ({ ...reply, results: reply.results.map(() => undefined) }) }],
  ['all is granted', { reply: eachLease((lease) => ({ ...lease, granted: Number.MAX_SAFE_INTEGER })) }],
  ['all is granted, and little is left', { reply: eachLease((lease) => ({ ...lease, granted: Number.MAX_SAFE_INTEGER, tail: true })) }],
  ['nothing is granted, and all is free', { reply: eachLease((lease) => ({ ...lease, granted: 0, free: 1e15, used: 0, tail: false })) }],
  ['all is used', { reply: eachLease((lease) => ({ ...lease, granted: 0, free: 0, used: 1e15, tail: true })) }],
  ['nothing is granted for a year', { reply: eachLease((lease) => ({ ...lease, granted: 0, quiet: 3e10 })) }],
  ['the interval of each lease is over', { reply: eachLease((lease) => ({ ...lease, now: lease.now + INTERVAL })) }],
  ['the interval of each lease is to come', { reply: eachLease((lease) => ({ ...lease, now: lease.now - INTERVAL })) }],
  ['what nodes hold is lost', { announcement: (announcement) => ({ ...announcement, lost: true, tail: true, free: 1e15 }) }],
  ['blocks that are announced are lifted', { announcement: (announcement) => ({ ...announcement, type: 'block', remaining: 0 }) }],
]

/** Replies in the wrong form, by the part that is wrong. */
const CLUMSY: readonly [string, (nonsense: () => unknown) => Lies][] = [
  ['a whole reply', (nonsense) => ({ reply: nonsense })],
  ...(['time', 'results', 'blocks', 'heartbeat'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of a reply`,
    (nonsense) => ({ reply: (reply) => ({ ...reply, [name]: nonsense() }) }),
  ]),
  ['each result', (nonsense) => ({ reply: eachResult(nonsense) })],
  ...(['cells', 'blocked'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of each result`,
    (nonsense) => ({ reply: eachResult((result) => ({ ...result, [name]: nonsense() })) }),
  ]),
  ['each cell', (nonsense) => ({ reply: eachCell(nonsense) })],
  ...(['ordinal', 'taken', 'given'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of each cell`,
    (nonsense) => ({ reply: eachCell((cell) => ({ ...cell, [name]: nonsense() })) }),
  ]),
  ['each lease', (nonsense) => ({ reply: eachLease(nonsense) })],
  ...(['granted', 'free', 'used', 'tail', 'quiet', 'epoch', 'now'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of each lease`,
    (nonsense) => ({ reply: eachLease((lease) => ({ ...lease, [name]: nonsense() })) }),
  ]),
  ['each answer to a block', (nonsense) => ({ reply: (reply) => ({ ...reply, blocks: reply.blocks.map(nonsense) }) })],
  ...(['nodes', 'generation', 'cursor', 'blocks', 'hot', 'leases', 'ahead', 'watched', 'statuses', 'rules'] as const).map(
    (name): [string, (nonsense: () => unknown) => Lies] => [
      `"${name}" of a heartbeat`,
      (nonsense) => ({ reply: inHeartbeat((heartbeat) => ({ ...heartbeat, [name]: nonsense() })) }),
    ],
  ),
  ...(['blocks', 'hot', 'leases', 'statuses', 'rules'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `an item of "${name}" of a heartbeat`,
    (nonsense) => ({ reply: inHeartbeat((heartbeat) => ({ ...heartbeat, [name]: [nonsense(), nonsense()] })) }),
  ]),
  ['each announcement', (nonsense) => ({ announcement: nonsense })],
  ...(['type', 'policyId', 'key', 'cells', 'remaining', 'ordinal', 'free', 'tail', 'lost'] as const).map(
    (name): [string, (nonsense: () => unknown) => Lies] => [
      `"${name}" of each announcement`,
      (nonsense) => ({ announcement: (announcement: Announcement) => ({ ...announcement, [name]: nonsense() }) }),
    ],
  ),
]

describe.each(POLICIES.map((policy) => [policy.name as string, policy] as const))(
  'a lying store and a limit of the kind "%s"',
  (_name, policy) => {
    test.each(SMOOTH)('says that %s: this node alone keeps its limit', async (_, lies) => {
      const nodes = lied(policy, lies)
      expect(await flood(nodes)).toBeLessThanOrEqual(LIMIT)
      await nodes.close()
    })

    test.each(CLUMSY)('says nonsense in %s: the limit holds, and nothing ends', async (name, lies) => {
      // A store with another clock has other intervals. Two of them overlap one of the test's.
      const most = name === '"time" of a reply' ? 2 * LIMIT : LIMIT
      for (const nonsense of NONSENSE) {
        const nodes = lied(policy, lies(nonsense))
        expect(await flood(nodes, 1), String(nonsense)).toBeLessThanOrEqual(most)
        await nodes.close()
      }
    })

    test('says nonsense now and then: the limit holds, and nothing ends', async () => {
      for (let run = 0; run < 15; run++) {
        const seed = `${SEED}/${run}`
        const random = new SeededRandom(seed)
        const lie = (value: object): unknown => {
          if (random.below(2) === 0) return value
          const liar = mutated(value, random)
          return tellsTime(value, liar) ? value : liar
        }
        const nodes = lied(policy, { reply: lie, announcement: lie })
        expect(await flood(nodes, 2), `FC_SEED=${SEED}, run ${run}`).toBeLessThanOrEqual(LIMIT)
        await nodes.close()
      }
    })
  },
)

describe('one bad entry', () => {
  test('fails alone: other keys are exchanged, it is sent again, and one warning names it', async () => {
    const clock = manualClock()
    const hub = new Hub(clock)
    const policies = [{ name: 'user', limit: 1_000, interval: 60_000 }] as const
    let asked = 0
    const spoil: Lies = {
      reply: (reply, { entries }) => ({
        ...reply,
        results: reply.results.map((result, i) => {
          if (entries[i]?.key !== 'bad\nkey') return result
          asked++
          return { ...result, blocked: Number.NaN }
        }),
      }),
    }
    let draw = 0
    const random = () => (draw++ % 97) / 97
    const [liar, other] = [lyingStore(memoryStore(hub), spoil), memoryStore(hub)].map((store) =>
      createThrottler({ policies, store, clock, random }),
    ) as [Throttler, Throttler]
    const warnings: WeirError[] = []
    liar.on('warning', ({ error }) => warnings.push(error))
    liar.start()
    other.start()
    await clock.advance(100)
    for (let i = 0; i < 900; i++) {
      liar.check('bad\nkey')
      liar.check('good')
    }
    await clock.advance(2_000)
    for (let i = 0; i < 50; i++) other.check('good')
    await clock.advance(2_000)
    expect(liar.state).toBe('synced')
    expect(other.peek('good').remaining).toBeLessThan(100)
    // A failing store is probed this often, and no more often.
    expect(asked).toBeGreaterThan(3)
    expect(asked).toBeLessThan(30)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ code: 'WEIR_STORE_REPLY' })
    expect(warnings[0]?.message).toBe(
      'Ignored an invalid reply from the store "lying": a result for key "bad\\nkey" of policy "user". Does another program write to these keys? See @weir/core/docs/errors/weir_store_reply.md',
    )
    const closing = Promise.all([liar.close(), other.close()])
    await clock.advance(3_000)
    await closing
  })
})

/**
 * Whether a reply is wrong about the time or a reset, in the right form. Weir relies on the store for the running interval and for
 * resets.
 */
function tellsTime(truth: object, lie: unknown): boolean {
  const timesOf = (value: unknown) => {
    const { time, heartbeat, results } = value as Partial<SyncReply>
    const leases = Array.isArray(results) ? results.flatMap((result: SyncReply['results'][number]) => result?.lease ?? []) : []
    return [time, heartbeat?.ahead, ...leases.flatMap(({ now, epoch }) => [now, epoch])]
  }
  try {
    const times = timesOf(truth)
    return timesOf(lie).some((said, i) => said !== times[i] && typeof said === 'number')
  } catch {
    // The reply can't be read.
    return false
  }
}
