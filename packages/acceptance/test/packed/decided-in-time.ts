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
import { adapterOf } from '@weir/core/adapter'
import { type ManualClock, SeededRandom } from '@weir/testing'

/** The start time of all ways, because decisions depend on the part of an interval in which a test begins. */
export const BEGIN = 1_000_800_000

/** A way to fake time: functions that begin the test, let time pass and set the wall clock. */
export interface Way {
  begin?(): void
  pass(milliseconds: number): unknown
  step?(milliseconds: number): void
}

const COUNTED = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  leakyBucket(),
]
/** All pairs of an algorithm and a coordination. */
const PAIRS = {
  local: COUNTED,
  background: [fixedWindow(), slidingWindow(), tokenBucket(), leakyBucket()],
  periodic: [fixedWindow(), slidingCounter()],
  leased: [fixedWindow()],
  central: COUNTED,
}
export const CELLS = Object.entries(PAIRS).flatMap(([coordination, algorithms]) =>
  algorithms.map((algorithm) => ({ algorithm, coordination, name: `${algorithm.id}, ${coordination}` })),
)
type Cell = (typeof CELLS)[number]

/**
 * The steps of a test: milliseconds to wait, the index of a process, the number of its requests, and milliseconds by which the wall clock
 * is set before. Processes don't sync at any of these times.
 */
const SCRIPT = [
  [137, 0, 3, 0],
  [1_513, 1, 2, 86_400_000],
  [1_517, 0, 4, 0],
  [7_039, 1, 4, -3_600_000],
  [2_027, 0, 4, 0],
  [12_041, 0, 8, 777],
  [1_123, 1, 3, 0],
  [21_057, 1, 7, -172_800_000],
] as const

/** A timeout that is longer than code needs to load on a busy machine. */
const DEADLINE = '1m'

function policyOf({ algorithm, coordination }: Cell, more: object = {}): never {
  return { limit: 6, interval: '10s', algorithm, coordination, ...more } as never
}

/** Loads the code of a cell before a test, because loading takes real time. */
export async function load(cell: Cell): Promise<void> {
  const asks = ['leased', 'central'].includes(cell.coordination)
  const throttler = createThrottler({ policies: [policyOf(cell, asks ? { storeTimeout: DEADLINE } : {})], store: memoryStore() })
  await throttler.checkAsync('a')
  await throttler.close()
}

/** The decisions of two processes, or of one without a store. */
export async function decided(cell: Cell, way: Way, clock?: ManualClock): Promise<string> {
  way.begin?.()
  const store = memoryStore()
  const random = new SeededRandom(7)
  const node = () =>
    createThrottler({
      policies: [policyOf(cell)],
      random: () => random.next(),
      ...(cell.coordination !== 'local' && { store }),
      ...(clock && { clock }),
    }).start() as Throttler
  const nodes = cell.coordination === 'local' ? [node()] : [node(), node()]
  let seen = ''
  await Promise.all(nodes.map((one) => adapterOf(one).inspected.coordinator?.loading))
  // The time in which the processes connect.
  await way.pass(1_500)
  for (const [wait, who, many, step] of SCRIPT) {
    if (step !== 0) way.step?.(step)
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
