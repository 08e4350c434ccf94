import type { IncomingMessage } from 'node:http'
import { createHistogram, performance } from 'node:perf_hooks'
import { CLIENT_HEADER, type Timing, WARM_UP } from './messages.ts'

const arrivals = new WeakMap<IncomingMessage, number>()
/** Nanoseconds in the framework and the limiter, including the time that the limiter waits. */
const taken = createHistogram()

export function arrived(request: IncomingMessage): void {
  arrivals.set(request, performance.now())
}

/** Records that a request is forwarded to the backend. Requests of the warm-up are not counted. */
export function handedOn(request: IncomingMessage): void {
  const at = arrivals.get(request)
  if (at === undefined || request.headers[CLIENT_HEADER] === WARM_UP) return
  taken.record(Math.max(1, Math.round((performance.now() - at) * 1e6)))
}

export function timing(): Timing {
  const milliseconds = (part: number): number => taken.percentile(part) / 1e6
  return { count: taken.count, median: milliseconds(50), p99: milliseconds(99), max: milliseconds(100) }
}
