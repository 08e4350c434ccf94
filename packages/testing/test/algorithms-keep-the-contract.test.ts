import { algorithms, fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import { describe, expect, test } from 'vitest'
import { type AlgorithmContractOptions, type AlgorithmUnderTest, algorithmContract } from '../src/index.ts'
import {
  BucketModel,
  FirstRequestModel,
  FixedWindowModel,
  SlidingCounterModel,
  SlidingLogModel,
  SlidingWindowModel,
  WarmUpModel,
} from './models.ts'

const runner = { describe, test }
const tried = new Set<string>()

function keepsTheContract(name: string, subject: AlgorithmUnderTest, options: AlgorithmContractOptions): void {
  tried.add(subject.algorithm.id)
  algorithmContract(name, subject, options)
}

test('all algorithms of core that have an interval are tried here', () => {
  const made = Object.values(algorithms).map((make) => make())
  expect([...tried]).toEqual(expect.arrayContaining(made.filter(({ slots }) => slots === undefined).map(({ id }) => id)))
})

keepsTheContract('fixedWindow', { algorithm: fixedWindow(), model: (interval) => new FixedWindowModel(interval) }, runner)

/** Seeds that found a cooldown whose `retryAfterMs` was a millisecond too long. */
const examples = {
  'a cooldown holds, and is over after exactly retryAfterMs': ['1795634505221', '1795700001147', '1795700002759', '1795700003844'],
}

keepsTheContract(
  'slidingCounter',
  { algorithm: slidingCounter(), model: (interval) => new SlidingCounterModel(interval) },
  { ...runner, examples },
)

for (const buckets of [30, 6]) {
  keepsTheContract(
    `slidingWindow with ${buckets} buckets`,
    { algorithm: slidingWindow({ subWindows: buckets }), model: (interval) => new SlidingWindowModel(interval, buckets) },
    { ...runner, examples },
  )
}

keepsTheContract(
  'fixedWindow from the first request',
  { algorithm: fixedWindow({ start: 'first-request' }), model: (interval) => new FirstRequestModel(interval) },
  runner,
)

keepsTheContract('slidingLog', { algorithm: slidingLog(), model: (interval) => new SlidingLogModel(interval) }, runner)

keepsTheContract('tokenBucket', { algorithm: tokenBucket(), model: (interval) => new BucketModel(interval) }, runner)

for (const burst of [1, 4.5, 60]) {
  keepsTheContract(
    `tokenBucket with a burst of ${burst}`,
    { algorithm: tokenBucket({ burst }), model: (interval) => new BucketModel(interval, () => burst) },
    runner,
  )
}

keepsTheContract('leakyBucket', { algorithm: leakyBucket(), model: (interval) => new BucketModel(interval) }, runner)

keepsTheContract(
  'leakyBucket with a burst of 7',
  { algorithm: leakyBucket({ burst: 7, immediate: 3 }), model: (interval) => new BucketModel(interval, () => 8) },
  runner,
)

for (const warmUp of [100, 10_000]) {
  keepsTheContract(
    `tokenBucket that warms up in ${warmUp} ms`,
    { algorithm: tokenBucket({ warmUp }), model: (interval) => new WarmUpModel(interval, warmUp) },
    {
      ...runner,
      without: {
        'units that are given back are free at once': 'a cold key was charged more for them than the units; held against the step',
        'units that are given back later leave the time that they were taken in, once': 'the same',
        'a charge counts, whether or not it fits': 'a cold key is charged more than the units; the warm-up tables have charges',
        'a request that another policy rejects leaves no trace': 'what remains is less than before by more than the cost',
      },
    },
  )
}
