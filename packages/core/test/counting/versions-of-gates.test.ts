import { expect, test } from 'vitest'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { offer, scene } from '../support/nodes.ts'

const POLICIES = {
  fixedWindow: {},
  slidingWindow: { algorithm: slidingWindow() },
  tokenBucket: { algorithm: tokenBucket() },
  spans: { coordination: 'periodic' },
} as const

test.each(Object.keys(POLICIES) as (keyof typeof POLICIES)[])(
  'a gate from before some thousand changes of the rule is not taken for one of now: %s',
  async (name) => {
    // A gate for a limit of 20 would be valid again if the changes were counted modulo one of these.
    for (const changes of [1_022, 1_023, 1_024, 2_046, 2_048]) {
      const { world, node, close } = scene()
      const policy = { name: 'api', interval: '30d', ...POLICIES[name] } as const
      const throttler = node({ ...policy, limit: 20 })
      throttler.start()
      await world.run(10)
      expect(offer(throttler, 'a', 1)).toBe(1)
      for (let i = 1; i < changes; i++) throttler.update([{ ...policy, limit: 100 + (i % 2) }])
      throttler.update([{ ...policy, limit: 3 }])
      expect(offer(throttler, 'a', 10)).toBe(2)
      await close()
    }
  },
)
