import {
  type Announcement,
  type Cell,
  createThrottler,
  Hub,
  memoryStore,
  type PolicyOptions,
  type Store,
  type SyncReply,
  type Throttler,
  type WeirError,
} from '@weir/core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Lies, lyingStore, type ManualClock, manualClock, mutated, NONSENSE, SeededRandom } from '../src/index.ts'

const unhandled: unknown[] = []
const hear = (reason: unknown): void => {
  console.error("STACK", (reason as Error).stack)
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
/** Moments of an interval at which requests come. */
const STEPS = 20
/** Every way of counting that exchanges with a store. */
const POLICIES: readonly PolicyOptions[] = [
  { name: 'fixed', limit: LIMIT, interval: INTERVAL, cooldown: 300 },
  { name: 'strict', limit: LIMIT, interval: INTERVAL, strict: true },
  { name: 'sliding', limit: LIMIT, interval: INTERVAL, window: 'sliding' },
  { name: 'published', limit: LIMIT, interval: INTERVAL, enforcement: 'published' },
  { name: 'two windows', limit: LIMIT, interval: INTERVAL, window: 'sliding', enforcement: 'published' },
]

interface Lied {
  readonly throttler: Throttler
  readonly clock: ManualClock
  readonly warnings: WeirError[]
  close(): Promise<void>
}

/** A node whose store lies, and an honest one beside it, which has its own share of the requests. */
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

/** Offers requests for some intervals; the most that was admitted of a key in any one of them. */
async function flood({ throttler, other, clock }: ReturnType<typeof lied>, strict: boolean, intervals = 3): Promise<number> {
  // The first exchange tells the store's time, which begins with an interval.
  throttler.start()
  other.start()
  await clock.advance(INTERVAL - (clock.now() % INTERVAL))
  let most = 0
  for (let interval = 0; interval < intervals; interval++) {
    const admitted = new Map<string, number>()
    const waiting: Promise<void>[] = []
    for (let step = 0; step < STEPS; step++) {
      for (const key of ['a', 'b', 'a', 'b', 'a', 'b']) {
        const count = (allowed: boolean): void => {
          if (allowed) admitted.set(key, (admitted.get(key) ?? 0) + 1)
        }
        if (strict) waiting.push(throttler.checkAsync(key).then(({ allowed }) => count(allowed)))
        else count(throttler.check(key).allowed)
        if (step % 5 === 0) other.check(key)
      }
      await clock.advance(INTERVAL / STEPS)
    }
    await clock.advance(0)
    await Promise.all(waiting)
    most = Math.max(most, ...admitted.values())
  }
  return most
}

const eachResult = (change: (result: NonNullable<SyncReply['results'][number]>) => unknown) => (reply: SyncReply) => ({
  ...reply,
  results: reply.results.map((result) => result && change(result)),
})
const eachCell = (change: (cell: Cell) => unknown) => eachResult((result) => ({ ...result, cells: result.cells.map(change) }))
const inHeartbeat = (change: (heartbeat: NonNullable<SyncReply['heartbeat']>) => object) => (reply: SyncReply) => ({
  ...reply,
  ...(reply.heartbeat && { heartbeat: change(reply.heartbeat) }),
})

/** Lies that keep to the form: no check can tell them from the truth. */
const SMOOTH: readonly [string, Lies][] = [
  ['nobody has taken anything', { reply: eachCell((cell) => ({ ...cell, taken: 0, given: 0 })) }],
  ['everybody has taken everything', { reply: eachCell((cell) => ({ ...cell, taken: Number.MAX_SAFE_INTEGER, given: 0 })) }],
  ['everything was given back', { reply: eachCell((cell) => ({ ...cell, taken: 1e15, given: 1e15 })) }],
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
  ['all is granted', { reply: eachResult((result) => ({ ...result, granted: true })) }],
  ['nothing is granted', { reply: eachResult((result) => ({ ...result, granted: false })) }],
  ['there are a million nodes', { reply: inHeartbeat((heartbeat) => ({ ...heartbeat, nodes: 1_000_000 })) }],
  ['its data is lost at each heartbeat', { reply: inHeartbeat((heartbeat) => ({ ...heartbeat, generation: `${Math.random()}` })) }],
  ['no part was exchanged', { reply: (reply) => ({ ...reply, results: reply.results.map(() => undefined) }) }],
  ['blocks that are announced are lifted', { announcement: (announcement) => ({ ...announcement, type: 'block', remaining: 0 }) }],
]

/** Lies in bad form, by what they are told in. */
const CLUMSY: readonly [string, (nonsense: () => unknown) => Lies][] = [
  ['a whole reply', (nonsense) => ({ reply: nonsense })],
  ...(['time', 'results', 'blocks', 'heartbeat'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of a reply`,
    (nonsense) => ({ reply: (reply) => ({ ...reply, [name]: nonsense() }) }),
  ]),
  ['each result', (nonsense) => ({ reply: eachResult(nonsense) })],
  ...(['cells', 'blocked', 'granted'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of each result`,
    (nonsense) => ({ reply: eachResult((result) => ({ ...result, [name]: nonsense() })) }),
  ]),
  ['each cell', (nonsense) => ({ reply: eachCell(nonsense) })],
  ...(['ordinal', 'taken', 'given'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of each cell`,
    (nonsense) => ({ reply: eachCell((cell) => ({ ...cell, [name]: nonsense() })) }),
  ]),
  ['each answer to a block', (nonsense) => ({ reply: (reply) => ({ ...reply, blocks: reply.blocks.map(nonsense) }) })],
  ...(['nodes', 'generation', 'cursor', 'blocks', 'hot', 'ahead', 'watched', 'statuses'] as const).map(
    (name): [string, (nonsense: () => unknown) => Lies] => [
      `"${name}" of a heartbeat`,
      (nonsense) => ({ reply: inHeartbeat((heartbeat) => ({ ...heartbeat, [name]: nonsense() })) }),
    ],
  ),
  ...(['blocks', 'hot', 'statuses'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `an item of "${name}" of a heartbeat`,
    (nonsense) => ({ reply: inHeartbeat((heartbeat) => ({ ...heartbeat, [name]: [nonsense(), nonsense()] })) }),
  ]),
  ['each announcement', (nonsense) => ({ announcement: nonsense })],
  ...(['type', 'policyId', 'key', 'cells', 'remaining'] as const).map((name): [string, (nonsense: () => unknown) => Lies] => [
    `"${name}" of each announcement`,
    (nonsense) => ({ announcement: (announcement: Announcement) => ({ ...announcement, [name]: nonsense() }) }),
  ]),
]

describe.each(POLICIES.map((policy) => [policy.name as string, policy] as const))(
  'a lying store and a limit of the kind "%s"',
  (name, policy) => {
    const strict = name === 'strict'

    test.each(SMOOTH)('says that %s: this node alone keeps its limit', async (_, lies) => {
      const nodes = lied(policy, lies)
      expect(await flood(nodes, strict)).toBeLessThanOrEqual(LIMIT)
      await nodes.close()
    })

    test.each(CLUMSY)('says nonsense in %s: the limit holds, and nothing ends', async (_, lies) => {
      for (const nonsense of NONSENSE) {
        const nodes = lied(policy, lies(nonsense))
        expect(await flood(nodes, strict, 1), String(nonsense)).toBeLessThanOrEqual(LIMIT)
        await nodes.close()
      }
    })

    test('says nonsense now and then: the limit holds, and nothing ends', async () => {
      const base = process.env['LIES_SEED'] ?? `${Date.now()}`
      for (let run = 0; run < 40; run++) {
        const seed = `${base}/${run}`
        const random = new SeededRandom(seed)
        // Times in good form are the store's to tell: which interval runs is its word.
        const lie = <Value extends object>(value: Value): unknown => {
          if (random.below(2) === 0) return value
          const liar = mutated(value, random) as { time?: unknown; heartbeat?: { ahead?: unknown } }
          if ('time' in value && isObject(liar) && typeof liar.time === 'number') liar.time = (value as { time: unknown }).time as number
          if (isObject(liar) && isObject(liar.heartbeat) && 'ahead' in liar.heartbeat) delete liar.heartbeat.ahead
          return liar
        }
        const nodes = lied(policy, { reply: lie, announcement: lie })
        expect(await flood(nodes, strict, 2), `LIES_SEED=${base}, run ${run}`).toBeLessThanOrEqual(LIMIT)
        await nodes.close()
      }
    })
  },
)

function isObject(value: unknown): value is { [name: string]: unknown } {
  if (typeof value !== 'object' || value === null) return false
  try {
    return Object.getPrototypeOf(value) === Object.prototype
  } catch {
    return false
  }
}
