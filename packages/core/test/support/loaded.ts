import { memoryStore } from '../../src/hub/index.ts'
import { createThrottler } from '../../src/index.ts'

// What policies of these coordinations need is loaded with the first of them. That takes real time: in tests by a manual clock
// something would stand in for it until they let real time pass.
for (const coordination of ['spans', 'leases'] as const) {
  const { inspected } = createThrottler({ policies: [{ limit: 1, interval: '1s', coordination }], store: memoryStore() })
  await inspected.coordinator?.loading
}
