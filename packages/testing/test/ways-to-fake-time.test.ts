import {
  createThrottler,
  fixedWindow,
  leakyBucket,
  memoryStore,
  slidingCounter,
  slidingLog,
  slidingWindow,
  type Throttler,
  tokenBucket,
} from '@weir/core'
import { afterEach, expect, test, vi } from 'vitest'
import { manualClock } from '../src/index.ts'
import { SeededRandom } from '../src/random/random.ts'

/** The same for all ways, as decisions depend on where in an interval a test begins. */
const BEGIN = 1_000_800_000

/** How a test lets time pass: with what it begins, and what passes. */
interface Way {
  begin?(): void
  pass(milliseconds: number): unknown
}

const ALL: Way = { begin: () => vi.useFakeTimers({ now: BEGIN }), pass: (time) => vi.advanceTimersByTimeAsync(time) }
const AT_ONCE: Way = { ...ALL, pass: (time) => vi.advanceTimersByTime(time) }
const BESIDE_SOCKETS: Way = { ...AT_ONCE, begin: () => vi.useFakeTimers({ now: BEGIN, toFake: ['Date', 'hrtime'] }) }

const COUNTED = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  leakyBucket(),
]
const CELLS = [
  ...COUNTED.map((algorithm) => ({ algorithm, coordination: 'local' })),
  ...[fixedWindow(), slidingWindow(), tokenBucket(), leakyBucket()].map((algorithm) => ({ algorithm, coordination: 'background' })),
]
type Cell = (typeof CELLS)[number]

/** Milliseconds to wait, which node is asked, and how often. No time is one at which nodes exchange their counts. */
const SCRIPT = [
  [137, 0, 3],
  [1_513, 1, 2],
  [1_517, 0, 4],
  [7_039, 1, 4],
  [2_027, 0, 4],
  [12_041, 0, 8],
  [1_123, 1, 3],
  [21_057, 1, 7],
] as const

afterEach(() => {
  vi.useRealTimers()
})

/** Code that is loaded when a policy needs it takes real time. */
async function load({ algorithm, coordination }: Cell): Promise<void> {
  const throttler = createThrottler({ policies: [{ limit: 6, interval: '10s', algorithm, coordination } as never], store: memoryStore() })
  await throttler.checkAsync('a')
  await throttler.close()
}

/** What two nodes decide, or one that has no store. */
async function decided({ algorithm, coordination }: Cell, way: Way, clock?: ReturnType<typeof manualClock>): Promise<string> {
  way.begin?.()
  const store = memoryStore()
  const random = new SeededRandom(7)
  const node = () =>
    createThrottler({
      policies: [{ limit: 6, interval: '10s', algorithm, coordination } as never],
      random: () => random.next(),
      ...(coordination !== 'local' && { store }),
      ...(clock && { clock }),
    }).start() as Throttler
  const nodes = coordination === 'local' ? [node()] : [node(), node()]
  let seen = ''
  await Promise.all(nodes.map(({ inspected }) => inspected.coordinator?.loading))
  // To connect.
  await way.pass(1_500)
  for (const [wait, who, many] of SCRIPT) {
    await way.pass(wait)
    for (let i = 0; i < many; i++) {
      let answer = ''
      void (nodes[who % nodes.length] as Throttler).checkAsync('a').then(({ allowed }) => {
        answer = allowed ? '1' : '0'
      })
      for (let turn = 0; answer === '' && turn < 1_000; turn++) await way.pass(turn === 0 ? 0 : 5)
      seen += answer
    }
    seen += ' '
  }
  const closed = Promise.all(nodes.map((one) => one.close()))
  await way.pass(6_000)
  await closed
  return seen
}

test.each(CELLS)('decisions are the same by fake timers and by a clock of its own: $algorithm.id, $coordination', async (cell) => {
  await load(cell)
  const clock = manualClock()
  const expected = await decided(cell, { pass: (time) => clock.advance(time) }, clock)
  expect(expected).toMatch(/^111 11 1/)
  expect(await decided(cell, ALL)).toBe(expected)
  if (cell.coordination !== 'local') return
  vi.useRealTimers()
  expect(await decided(cell, AT_ONCE)).toBe(expected)
  vi.useRealTimers()
  expect(await decided(cell, BESIDE_SOCKETS)).toBe(expected)
})
