import { input, report } from '../harness/child.ts'
import { ALONE, type AloneName } from './contenders.ts'

/** A flood of requests that wait in one process. */
export interface CostInput {
  readonly contender: AloneName
  /** Requests that are all made at once. */
  readonly requests: number
  /** The number of requests that may start in each quarter of a second. */
  readonly limit: number
}

export interface CostResult {
  /** Microseconds of CPU time for a request. */
  readonly cpu: number
  /** Bytes of memory for each request while all wait. Only with `--expose-gc`. */
  readonly bytes: number
}

const INTERVAL = 250

const { contender, requests, limit } = input<CostInput>()
const acquire: () => Promise<unknown> = ALONE[contender](limit, INTERVAL)
await acquire()
const before = used()
const cpuBefore = process.cpuUsage()
const all: Promise<unknown>[] = []
for (let i = 0; i < requests; i++) all.push(acquire())
await new Promise((resolve) => setTimeout(resolve, 0))
const bytes = (used() - before) / requests
await Promise.all(all)
const { user, system } = process.cpuUsage(cpuBefore)
report({ cpu: (user + system) / requests, bytes } satisfies CostResult)
process.exit(0)

function used(): number {
  const { gc } = globalThis as { gc?: () => void }
  gc?.()
  return gc === undefined ? 0 : process.memoryUsage().heapUsed
}
