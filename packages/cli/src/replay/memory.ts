import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createThrottler } from '@weir/core'
import { type LogPolicy, locally } from './cluster.ts'

/** Keys that are created for the measurement. */
const KEYS = 16_384

/** Measures the memory that a key needs in all these policies together, in bytes. The keys are addresses. */
export function bytesPerKey(policies: readonly LogPolicy[]): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const throttler = createThrottler({ policies: policies.map((policy) => undelayed(locally(policy))) })
  const check = (from: number, to: number): void => {
    for (let key = from; key < to; key++) throttler.check(`10.${key >> 16}.${(key >> 8) & 255}.${key & 255}`)
  }
  // Creates objects that exist only once before the measurement.
  check(0, 64)
  const before = used()
  check(64, 64 + KEYS)
  const bytes = (used() - before) / KEYS
  void throttler.close()
  return Math.max(0, Math.round(bytes))
}

/** Removes `delay`, because the synchronous `check` can't delay a request. */
function undelayed(policy: LogPolicy): LogPolicy {
  const { delay: _, ...rest } = policy as Extract<LogPolicy, { readonly delay?: unknown }>
  return rest as LogPolicy
}
