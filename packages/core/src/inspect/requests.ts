import { type RequestRejection, type Requests, SLOT, SLOTS } from '../report/requests.ts'

/** Requests of the last half hour. */
export interface RequestHistory {
  /** Milliseconds of one slot, and since the newest ended. */
  readonly slot: number
  readonly ended: number
  /** Requests in each slot, newest first; at most 120 of them. */
  readonly allowed: readonly number[]
  readonly rejected: readonly number[]
}

/**
 * Requests as clients see them, however many policies decided about each: sums since the throttler's start. A request that passes two
 * throttlers counts at both; one that passes uncounted (`skip`, `allow`, no policy applies) at none. What a dry run lets pass is allowed.
 */
export interface RequestsSnapshot {
  readonly allowed: number
  readonly rejected: number
  /** The rejected ones by why; of several policies by the one that rejected for longest. */
  readonly reasons: Readonly<Record<RequestRejection, number>>
  /** The last half hour. */
  readonly history: RequestHistory
}

/** @param now on the monotonic clock */
export function requestsOf(requests: Requests, now: number): RequestsSnapshot {
  const { rejected, reasons, slots, ended, end } = requests
  const read = (ring: Float64Array): number[] =>
    Array.from({ length: Math.min(ended, SLOTS) }, (_, i) => ring[(ended - 1 - i) % SLOTS] as number)
  const history = { ended: Math.max(0, now - end), slot: SLOT, allowed: read(slots.allowed), rejected: read(slots.rejected) }
  return { allowed: escalating(requests), rejected, reasons: { ...reasons }, history }
}

const shown = new WeakMap<object, number>()

/**
 * A sum of what was allowed, as it is shown. It is less again once a request turns out never to have gone, and monitoring takes a counter that has become
 * smaller for one that began anew: so it stands still until the sum is where it was.
 */
export function escalating(counts: { readonly allowed: number }): number {
  const most = Math.max(counts.allowed, shown.get(counts) ?? 0)
  shown.set(counts, most)
  return most
}
