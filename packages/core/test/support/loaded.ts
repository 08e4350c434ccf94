import { memoryStore } from '../../src/hub/index.ts'
import { type AnyPolicyOptions, concurrency, createThrottler, leakyBucket, slidingCounter, slidingWindow } from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'

const LATER: readonly Omit<AnyPolicyOptions, 'limit'>[] = [
  { interval: '1s', coordination: 'periodic' },
  { interval: '1s', coordination: 'leased' },
  { interval: '1s', algorithm: slidingWindow() },
  { interval: '1s', algorithm: slidingCounter(), coordination: 'periodic' },
  { interval: '1s', algorithm: leakyBucket({ burst: 1, immediate: 1 }) },
  { algorithm: concurrency(), coordination: 'leased' },
]

// The first policy of a kind loads its code in real time. In tests with a manual clock a stand-in would decide until they let real time
// pass.
for (const policy of LATER) {
  const { inspected } = adapterOf(createThrottler({ policies: [{ limit: 1, ...policy } as AnyPolicyOptions], store: memoryStore() }))
  await inspected.coordinator?.loading
}
await createThrottler({ policies: [{ limit: 1, interval: '1s', coordination: 'local' }] }).usage('loads what tells it')
await import('../../src/sync/link/small-limits.ts')
await import('../../src/sync/link/differing-rules.ts')
await import('../../src/inspect/status-text.ts')
await import('../../src/central/index.ts')
