import { type Coordination, createThrottler } from '@weir/core'
import { redisStore } from '@weir/redis'
import { input, report } from '../harness/child.ts'

/** One of several processes that call somebody who allows `limit` requests a second. */
export interface PaceInput {
  readonly port: number
  readonly coordination: Coordination
  readonly limit: number
  /** When all begin, by the wall clock, and for how many milliseconds they go on. */
  readonly from: number
  readonly during: number
}

export interface PaceResult {
  /** When requests went, by the wall clock. */
  readonly times: readonly number[]
}

/** Requests of one process that wait at any time. */
const WAITING = 4

const { port, coordination, limit, from, during } = input<PaceInput>()
const throttler = createThrottler({
  store: redisStore({ host: '127.0.0.1', port }),
  // Never more than the limit, also while a process starts that can't keep up with the others.
  policies: [{ limit, interval: '1s', coordination, degraded: coordination === 'background' ? 'share' : 'closed' }],
})
throttler.start()
const times: number[] = []
const until = from + during
await new Promise((resolve) => setTimeout(resolve, from - Date.now()))
await Promise.all(
  Array.from({ length: WAITING }, async () => {
    while (Date.now() < until) {
      const decision = await throttler.acquire('api', { timeout: '20s', refusal: 'return' })
      if (decision.allowed) times.push(Date.now())
    }
  }),
)
report({ times: times.filter((time) => time < until) } satisfies PaceResult)
process.exit(0)
