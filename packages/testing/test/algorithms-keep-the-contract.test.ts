import { fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import { describe, test } from 'vitest'
import { algorithmContract } from '../src/index.ts'
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

algorithmContract('fixedWindow', { algorithm: fixedWindow(), model: (interval) => new FixedWindowModel(interval) }, runner)

/** Seeds by which a cooldown that was told a millisecond too long was found. */
const examples = {
  'a cooldown holds, and is over after exactly retryAfterMs': ['1795634505221', '1795700001147', '1795700002759', '1795700003844'],
}

algorithmContract(
  'slidingCounter',
  { algorithm: slidingCounter(), model: (interval) => new SlidingCounterModel(interval) },
  { ...runner, examples },
)

for (const buckets of [30, 6]) {
  algorithmContract(
    `slidingWindow with ${buckets} buckets`,
    { algorithm: slidingWindow({ subWindows: buckets }), model: (interval) => new SlidingWindowModel(interval, buckets) },
    { ...runner, examples },
  )
}

algorithmContract(
  'fixedWindow from the first request',
  { algorithm: fixedWindow({ start: 'first-request' }), model: (interval) => new FirstRequestModel(interval) },
  runner,
)

algorithmContract('slidingLog', { algorithm: slidingLog(), model: (interval) => new SlidingLogModel(interval) }, runner)

algorithmContract('tokenBucket', { algorithm: tokenBucket(), model: (interval) => new BucketModel(interval) }, runner)

for (const burst of [1, 4.5, 60]) {
  algorithmContract(
    `tokenBucket with a burst of ${burst}`,
    { algorithm: tokenBucket({ burst }), model: (interval) => new BucketModel(interval, () => burst) },
    runner,
  )
}

algorithmContract('leakyBucket', { algorithm: leakyBucket(), model: (interval) => new BucketModel(interval) }, runner)

algorithmContract(
  'leakyBucket with a burst of 7',
  { algorithm: leakyBucket({ burst: 7, immediate: 3 }), model: (interval) => new BucketModel(interval, () => 8) },
  runner,
)

for (const warmUp of [100, 10_000]) {
  algorithmContract(
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
