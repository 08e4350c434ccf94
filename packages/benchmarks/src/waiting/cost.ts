import { createThrottler } from '@weir/core'
import Bottleneck from 'bottleneck'
import { RateLimiter } from 'limiter'
import pThrottle from 'p-throttle'
import { input, report } from '../harness/child.ts'
import type { CONTENDERS } from './contenders.ts'

/** A flood of requests that wait in one process. */
export interface CostInput {
  readonly contender: (typeof CONTENDERS)[number]
  /** All made at once. */
  readonly requests: number
  /** How many may go in each quarter of a second. */
  readonly limit: number
  /** Keys that they are spread over; more than one only for Weir. */
  readonly keys: number
}

export interface CostResult {
  /** Microseconds of CPU time for a request. */
  readonly cpu: number
  /** Bytes that are held for each request while all wait; only with `--expose-gc`. */
  readonly bytes: number
}

const INTERVAL = 250

const { contender, requests, limit, keys } = input<CostInput>()
let throttler: ReturnType<typeof createThrottler> | undefined
const names = Array.from({ length: keys }, (_, i) => `key ${i}`)
const acquire = made()
await acquire(-1)
// Keys that are known take no memory for being new.
for (const name of names) warm(name)
const before = used()
const cpuBefore = process.cpuUsage()
const all: Promise<unknown>[] = []
for (let i = 0; i < requests; i++) all.push(acquire(i))
await new Promise((resolve) => setTimeout(resolve, 0))
const bytes = (used() - before) / requests
// With many keys it is the memory that counts: nobody goes.
if (keys === 1) await Promise.all(all)
const { user, system } = process.cpuUsage(cpuBefore)
report({ cpu: (user + system) / requests, bytes } satisfies CostResult)
process.exit(0)

function warm(name: string): void {
  if (keys > 1) throttler?.check(name)
}

function made(): (i: number) => Promise<unknown> {
  switch (contender) {
    case 'weir': {
      const queue = { maxWaiting: 2 * requests, maxWaitingPerKey: 2 * requests, maxWait: '1h' } as const
      throttler = createThrottler({
        policies: [{ limit, interval: keys === 1 ? INTERVAL : '1h', coordination: 'local' }],
        queue,
        maxKeys: 2 * keys,
      })
      return (i) => (throttler as NonNullable<typeof throttler>).acquire(keys === 1 ? 'all' : i < 0 ? 'first' : (names[i % keys] as string))
    }
    case 'p-throttle':
      return pThrottle({ limit, interval: INTERVAL })(async () => {})
    case 'limiter': {
      const limiter = new RateLimiter({ tokensPerInterval: limit, interval: INTERVAL })
      return () => limiter.removeTokens(1)
    }
    case 'bottleneck': {
      const limiter = new Bottleneck({ reservoir: limit, reservoirRefreshAmount: limit, reservoirRefreshInterval: INTERVAL })
      return () => limiter.schedule(async () => {})
    }
  }
}

function used(): number {
  const { gc } = globalThis as { gc?: () => void }
  gc?.()
  return gc === undefined ? 0 : process.memoryUsage().heapUsed
}
