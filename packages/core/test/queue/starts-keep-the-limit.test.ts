import { expect, test } from 'vitest'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Scene, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const LIMIT = 10
const CALLS = 60
const INTERVAL = 1_000
/** Milliseconds by which a start may come later than its decision. */
const TOLERANCE = 1

/** Why a start may come later than the decision, and what is late then. */
const LATE: Readonly<Record<string, { call?: number; reading?: number; start?: number; code?: 'loaded'; stop?: number }>> = {
  'the calls are made in one loop that takes 400 ms': { call: 2, code: 'loaded' },
  'so are the first calls of a process': { call: 2 },
  'deciding takes long': { reading: 0.05, code: 'loaded' },
  'deciding about the first calls takes long': { reading: 0.05 },
  'each of the first starts takes 20 ms': { start: 20, code: 'loaded' },
  'the process stands still for 700 ms': { stop: 700, code: 'loaded' },
}

/** Those that decide here: a decision of the store is always a part of a round trip old. */
const CELLS = EACH_CELL.filter(
  ({ name, coordination }) => name !== 'concurrency()' && coordination !== 'leased' && coordination !== 'central',
)

/** Lets virtual time pass, and code be loaded, which takes real time: that is done before each millisecond. */
async function pass(here: Scene, milliseconds: number): Promise<void> {
  const end = here.world.time + milliseconds
  while (here.world.time < end) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(1)
  }
}

/**
 * The most that an algorithm allows in one interval, and whether intervals begin at whole multiples, with the first start, or at any
 * moment.
 */
const BOUNDS: Readonly<Record<string, readonly [most: number, begins: 'aligned' | 'first' | 'any']>> = {
  'fixedWindow()': [LIMIT, 'aligned'],
  "fixedWindow({ start: 'first-request' })": [LIMIT, 'first'],
  'slidingWindow()': [LIMIT + 2, 'any'],
  // If units came late in the previous interval, it allows as many again.
  'slidingCounter()': [LIMIT + 8, 'any'],
  'slidingLog()': [LIMIT, 'any'],
  'leakyBucket()': [LIMIT + 1, 'any'],
  'tokenBucket()': [2 * LIMIT + 1, 'any'],
}

/** The most starts in one interval. */
function most(starts: readonly number[], begins: 'aligned' | 'first' | 'any'): number {
  let worst = 0
  let next = 0
  for (const start of starts) {
    if (begins !== 'any' && start < next) continue
    const from = begins === 'aligned' ? Math.floor(start / INTERVAL) * INTERVAL : start
    next = from + INTERVAL - (begins === 'aligned' ? 0 : TOLERANCE)
    worst = Math.max(worst, starts.filter((at) => at >= from && at < next).length)
  }
  return worst
}

for (const [title, late] of Object.entries(LATE)) {
  test.each(CELLS)(`no interval has more starts than the limit allows although ${title}: $name, $coordination`, async (cell) => {
    const { algorithm, name, coordination } = cell
    const [bound, begins] = BOUNDS[name] as (typeof BOUNDS)[string]
    const here = scene()
    const policy = { limit: LIMIT, interval: INTERVAL, algorithm, coordination } as unknown as AnyPolicyOptions
    const node = here.node(policy, { alone: coordination === 'local' }).start()
    if (late.code === 'loaded') await waiting(here, node as never)
    await here.world.run(2_700)
    const clock = node.clock as typeof node.clock & { monotonic: () => number }
    const read = clock.monotonic.bind(clock)
    clock.monotonic = () => {
      here.world.stall(late.reading ?? 0)
      return read()
    }
    const starts: number[] = []
    for (let i = 0; i < CALLS; i++) {
      void node.schedule('a', () => {
        starts.push(here.world.time)
        if (starts.length <= LIMIT) here.world.stall(late.start ?? 0)
      })
      here.world.stall(late.call ?? 0)
    }
    await pass(here, 50)
    await here.world.run(1_300)
    here.world.stall(late.stop ?? 0)
    await here.world.run(7_000)
    expect(starts).toHaveLength(CALLS)
    expect(most(starts, begins)).toBeLessThanOrEqual(bound)
    await here.close()
  })
}
