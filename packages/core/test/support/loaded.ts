import { memoryStore } from '../../src/hub/index.ts'
import { createThrottler, leakyBucket, type PolicyOptions, slidingCounter, slidingWindow } from '../../src/index.ts'

const LATER: readonly Pick<PolicyOptions, 'algorithm' | 'coordination'>[] = [
  { coordination: 'spans' },
  { coordination: 'leases' },
  { algorithm: slidingWindow() },
  { algorithm: slidingCounter(), coordination: 'spans' },
  { algorithm: leakyBucket({ burst: 1, immediate: 1 }) },
]

// What such policies need is loaded with the first of them. That takes real time: in tests by a manual clock something would stand in
// for it until they let real time pass.
for (const policy of LATER) {
  const { inspected } = createThrottler({ policies: [{ limit: 1, interval: '1s', ...policy }], store: memoryStore() })
  await inspected.coordinator?.loading
}
