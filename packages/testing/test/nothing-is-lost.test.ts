import { createThrottler, slidingWindow } from '@weir/core'
import type { Ordinal } from '@weir/core/sync'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  type Fault,
  faults,
  moving,
  poisson,
  type Scenario,
  SimulatedStore,
  type SimulationResult,
  simulate,
  uniform,
  zipf,
} from '../src/index.ts'

vi.setConfig({ testTimeout: 120_000 })

const LIMIT = 200
const INTERVAL = 10_000
/** Requests start here, in intervals. A clock that is wrong by a round trip must not put any into the interval before. */
const REQUESTS_BEGIN = 0.02
/** Requests end here. Faults end a little later. */
const REQUESTS_END = 0.5
const FAULTS_END = 0.6
/** The moment at which all processes close, in intervals. */
const CLOSED = FAULTS_END + 0.2

/** Longer than the store can be down, including outages in a row. A process that closes meanwhile waits for the store. */
const CLOSE_TIMEOUT = 6_000

const moment = fc.double({ min: 0.05, max: REQUESTS_END, noNaN: true })
const span = fc.tuple(moment, fc.double({ min: 0.005, max: 0.1, noNaN: true })).map(([from, length]) => ({ from, until: from + length }))
const place = fc.nat({ max: 3 })

const harmless: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ kind: fc.constant('restart' as const), at: moment, node: place }),
  fc.record({ kind: fc.constant('scale' as const), at: moment, nodes: fc.integer({ min: 1, max: 8 }) }),
  fc.tuple(span, fc.constantFrom('reject' as const, 'hang' as const)).map(([when, mode]) => ({ kind: 'outage' as const, ...when, mode })),
  fc.tuple(span, place).map(([when, node]) => ({ kind: 'partition' as const, ...when, node })),
  span.map((when) => ({ kind: 'silence' as const, ...when })),
  fc.tuple(span, fc.integer({ min: 1, max: 300 })).map(([when, extra]) => ({ kind: 'slow-store' as const, ...when, extra })),
)

const scenarios = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  nodes: fc.integer({ min: 1, max: 6 }),
  times: fc.constantFrom(0.5, 2, 10),
  list: fc.array(harmless, { maxLength: 4 }),
  balancing: fc.constantFrom(uniform, zipf(), moving()),
})

/** The moment at which the store loses its data, in intervals: at any time before the processes close, often just before. */
const losses = fc.oneof(
  fc.double({ min: 0.3, max: CLOSED, maxExcluded: true, noNaN: true }),
  fc.double({ min: CLOSED - 0.01, max: CLOSED, maxExcluded: true, noNaN: true }),
)

type Choice = typeof scenarios extends fc.Arbitrary<infer T> ? T : never

/** Runs one interval and closes all processes in it. Returns the units that were allowed and the units in the store. */
async function closed(
  choice: Choice,
  window: 'fixed' | 'sliding',
  more: readonly Fault[] = [],
): Promise<{ allowed: number; stored: number }> {
  const { seed, nodes, times, list, balancing } = choice
  let store: SimulatedStore | undefined
  const scenario: Scenario = {
    seed,
    nodes,
    policy: { limit: LIMIT, interval: INTERVAL, ...(window === 'sliding' && { algorithm: slidingWindow({ subWindows: 10 }) }) },
    intervals: 1,
    warmup: 0,
    load: poisson((position) => {
      if (position < REQUESTS_BEGIN) return { times: 0, until: REQUESTS_BEGIN }
      return position < REQUESTS_END ? { times, until: REQUESTS_END } : { times: 0, until: Number.POSITIVE_INFINITY }
    }),
    balancing,
    network: { duplication: 0.1, reordering: 0.1, announcementLoss: 0.1 },
    storeTimeout: 100,
    faults: faults(...list, ...more, { kind: 'scale', at: CLOSED, nodes: 0 }),
    node: ({ policy, store: given, clock, random }) => {
      if (given instanceof SimulatedStore) store = given
      return createThrottler({ policies: [policy], store: given, clock, random, closeTimeout: CLOSE_TIMEOUT })
    },
  }
  const result = await simulate(scenario)
  return { allowed: result.allowed, stored: storedOf(result, store) }
}

/** The store's counts of the first interval, for windows with cells of any length. */
function storedOf({ policy }: SimulationResult, store: SimulatedStore | undefined): number {
  const width = store?.widthOf(policy.id) ?? INTERVAL
  const first = Math.round((Math.ceil(1_000_800_000 / INTERVAL) * INTERVAL) / width)
  let sum = 0
  for (let index = 0; index < INTERVAL / width; index++) sum += store?.total(policy.id, 'key', (first + index) as Ordinal) ?? 0
  return sum
}

describe.each(['fixed', 'sliding'] as const)('once all nodes of a cluster with a %s window are closed', (window) => {
  it('the store has what they allowed, whatever was lost, doubled, reordered or restarted', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, async (choice) => {
        const { allowed, stored } = await closed(choice, window)
        expect(allowed).toBeGreaterThan(0)
        expect(stored).toBe(allowed)
      }),
      { numRuns: 30 },
    )
  })

  it('the store has what they allowed, though it lost all before', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, losses, async (choice, at) => {
        // A process that closed before the loss can't resend its units.
        const list = choice.list.filter(({ kind }) => kind !== 'restart' && kind !== 'scale')
        const { allowed, stored } = await closed({ ...choice, list }, window, [{ kind: 'data-loss', at }])
        expect(stored).toBe(allowed)
      }),
      { numRuns: 100 },
    )
  })

  it('a crash has lost no more than what the node had not sent', async () => {
    const crash = fc.record({ kind: fc.constant('crash' as const), at: moment, node: place })
    await fc.assert(
      fc.asyncProperty(scenarios, fc.array(crash, { minLength: 1, maxLength: 3 }), async (choice, crashes) => {
        const { allowed, stored } = await closed({ ...choice, list: [], nodes: 4 }, window, crashes)
        expect(stored).toBeLessThanOrEqual(allowed)
        // The bound for each crash: the units up to the process's next sync, the units in flight, and the units of the 2 ms between
        // two syncs.
        expect(allowed - stored).toBeLessThanOrEqual(crashes.length * (LIMIT / 4 + 2))
      }),
      { numRuns: 20 },
    )
  })
})
