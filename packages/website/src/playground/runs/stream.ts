import {
  type Algorithm,
  createThrottler,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'
import { manualClock, SeededRandom } from '@weir/testing'
import { numberOf, type Settings, textOf } from '../settings/settings.ts'
import { mostIn } from './admissions.ts'
import { fingerprintOf } from './fingerprint.ts'
import { intervalOf } from './scenario.ts'

/** Intervals in which requests arrive, and intervals that are shown. */
const COMES = 4.2
const LENGTH = 5
/** Number of bars in an interval. */
const BARS = 20

/** The same requests through every algorithm, in one process. */
export interface StreamOutcome {
  readonly kind: 'stream'
  /** Milliseconds of a bar. */
  readonly bar: number
  /** Units that the limit allows in the time of a bar, if spread evenly. */
  readonly pace: number
  /** Offered requests, for each bar. */
  readonly came: readonly number[]
  readonly rows: readonly {
    readonly name: string
    /** Allowed requests, for each bar. */
    readonly went: readonly number[]
    readonly allowed: number
    readonly mostInInterval: number
    /** In any twentieth of an interval. */
    readonly mostAtOnce: number
    /** Milliseconds. */
    readonly longestWait: number
  }[]
  readonly digest: string
}

interface Way {
  readonly name: string
  readonly algorithm: Algorithm
  /** Whether requests wait instead of being rejected. */
  readonly queued?: true
}

export async function runStream(settings: Settings): Promise<StreamOutcome> {
  const interval = intervalOf(settings)
  const limit = numberOf(settings, 'limit')
  const burst = numberOf(settings, 'burst')
  const warmUp = `${numberOf(settings, 'warmup')}s` as const
  const times = [...arrivals(settings)].filter((time) => time < COMES * interval)
  const ways: readonly Way[] = [
    { name: 'fixedWindow()', algorithm: fixedWindow() },
    { name: "fixedWindow({ start: 'first-request' })", algorithm: fixedWindow({ start: 'first-request' }) },
    { name: 'slidingWindow()', algorithm: slidingWindow() },
    { name: 'slidingCounter()', algorithm: slidingCounter() },
    { name: 'slidingLog()', algorithm: slidingLog() },
    { name: `tokenBucket({ burst: ${burst} })`, algorithm: tokenBucket({ burst }) },
    { name: `tokenBucket({ burst: ${burst}, warmUp: '${warmUp}' })`, algorithm: tokenBucket({ burst, warmUp }) },
    { name: `leakyBucket({ burst: ${burst} }), each waits for its turn`, algorithm: leakyBucket({ burst }) },
    { name: `tokenBucket({ burst: ${burst} }), a queue: acquire()`, algorithm: tokenBucket({ burst }), queued: true },
  ]
  const rows: StreamOutcome['rows'][number][] = []
  const all: number[] = []
  for (const way of ways) {
    const { went, longest } = await pass(way, { limit, interval }, times)
    all.push(...went)
    rows.push({
      name: way.name,
      went: bars(went, interval),
      allowed: went.length,
      mostInInterval: mostIn(went, interval),
      mostAtOnce: mostIn(went, interval / BARS),
      longestWait: longest,
    })
  }
  return {
    kind: 'stream',
    bar: interval / BARS,
    pace: limit / BARS,
    came: bars(times, interval),
    rows,
    digest: fingerprintOf([times.length, ...all.map((time) => time.toFixed(3))]),
  }
}

/** Times at which allowed requests continue, in order, and the longest wait. All in milliseconds. */
async function pass(
  { algorithm, queued }: Way,
  policy: { readonly limit: number; readonly interval: number },
  times: readonly number[],
): Promise<{ readonly went: readonly number[]; readonly longest: number }> {
  const clock = manualClock()
  const throttler = createThrottler({ policies: [{ ...policy, algorithm, coordination: 'local' }], clock })
  // The queue is loaded with the first request that may wait. That takes real time, while virtual time stands still.
  if (queued) await throttler.acquire('another key')
  // Aligns the intervals with the picture.
  await clock.advance(policy.interval - (clock.now() % policy.interval))
  const began = clock.monotonic()
  const went: number[] = []
  let longest = 0
  const goes = (came: number, at: number): void => {
    went.push(at)
    longest = Math.max(longest, at - came)
  }
  for (const came of times) {
    await clock.advance(began + came - clock.monotonic())
    if (queued) {
      const asked = throttler.tryAcquire('key', { timeout: policy.interval })
      asked.then(
        ({ allowed }) => allowed && goes(came, clock.monotonic() - began),
        () => {},
      )
    } else {
      const { allowed, delayMs: delay } = throttler.check('key')
      if (allowed) goes(came, came + delay)
    }
  }
  // Waiting requests continue, or reach their timeout.
  await clock.advance(2 * policy.interval)
  await throttler.close()
  return { went: went.sort((one, other) => one - other), longest }
}

function bars(times: readonly number[], interval: number): number[] {
  const counts = Array.from({ length: LENGTH * BARS }, () => 0)
  for (const time of times) {
    const bar = Math.floor((time * BARS) / interval)
    if (bar < counts.length) counts[bar]!++
  }
  return counts
}

/** Times of the requests in milliseconds, in order. */
function* arrivals(settings: Settings): Generator<number> {
  const interval = intervalOf(settings)
  const limit = numberOf(settings, 'limit')
  const end = COMES * interval
  const evenly = function* (from: number, until: number, times: number): Generator<number> {
    const gap = interval / (limit * times)
    for (let index = 0; from + index * gap < until; index++) yield from + index * gap
  }
  switch (textOf(settings, 'shape')) {
    case 'flood':
      yield* evenly(0, end, 4)
      break
    case 'steady':
      yield* evenly(0, end, 0.9)
      break
    case 'spikes':
      for (let begin = 0.5 * interval; begin < end; begin += interval) yield* evenly(begin, begin + interval / 25, 25)
      break
    case 'random': {
      const random = new SeededRandom(numberOf(settings, 'seed'))
      for (let time = 0; time < end; time += (random.exponential() * interval) / (1.5 * limit)) yield time
      break
    }
    default:
      // A few, a flood around a boundary of the intervals, a pause, and twice the limit's rate.
      yield* evenly(0.1 * interval, 0.7 * interval, 0.5)
      yield* evenly(0.8 * interval, 1.2 * interval, 5)
      yield* evenly(2.5 * interval, 4.2 * interval, 2)
  }
}
