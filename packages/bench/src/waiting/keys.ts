import { createThrottler } from '@weir/core'
import { input, report } from '../harness/child.ts'

/** One waiting request for each of many keys. */
export interface KeysInput {
  readonly keys: number
}

export interface KeysResult {
  /** Bytes of memory for each request. Only with `--expose-gc`. */
  readonly bytes: number
  /** Microseconds of CPU time to make each request wait. */
  readonly cpu: number
}

const { keys } = input<KeysInput>()
const throttler = createThrottler({
  policies: [{ limit: 1, interval: '1h', coordination: 'local' }],
  queue: { maxWaiting: 2 * keys, maxWait: '1h' },
  maxKeys: 2 * keys,
})
const names = Array.from({ length: keys }, (_, i) => `key ${i}`)
// The keys are created first, so that new keys need no memory in the measurement.
for (const name of names) throttler.check(name)
throttler.check('first')
void throttler.acquire('first')
// The queue's code is loaded with the first waiting request.
while (throttler.waiting === 0) await new Promise((resolve) => setTimeout(resolve, 10))
const before = used()
const cpuBefore = process.cpuUsage()
const all = names.map((name) => throttler.acquire(name))
const { user, system } = process.cpuUsage(cpuBefore)
const bytes = (used() - before) / keys
if (throttler.waiting !== all.length + 1) throw new Error(`${throttler.waiting} wait, and not ${all.length + 1}`)
report({ bytes, cpu: (user + system) / keys } satisfies KeysResult)
process.exit(0)

function used(): number {
  const { gc } = globalThis as { gc?: () => void }
  gc?.()
  return gc === undefined ? 0 : process.memoryUsage().heapUsed
}
