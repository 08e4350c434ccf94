import { fixedWindow, slidingCounter, slidingWindow } from '@weir/core'
import { describe, test } from 'vitest'
import { algorithmContract } from '../src/index.ts'
import { FixedWindowModel, SlidingCounterModel, SlidingWindowModel } from './models.ts'

const runner = { describe, test }

algorithmContract('fixedWindow', { algorithm: fixedWindow(), model: (interval) => new FixedWindowModel(interval) }, runner)

algorithmContract('slidingCounter', { algorithm: slidingCounter(), model: (interval) => new SlidingCounterModel(interval) }, runner)

for (const buckets of [30, 6]) {
  algorithmContract(
    `slidingWindow with ${buckets} buckets`,
    { algorithm: slidingWindow({ buckets }), model: (interval) => new SlidingWindowModel(interval, buckets) },
    runner,
  )
}
