import { type RequestRejection, type Requests, SLOT, SLOTS } from '../report/requests.ts'

/** Requests of the last half hour, in slots of 15 s. */
export interface RequestHistory {
  /** Milliseconds of one slot, and since the end of the newest slot. */
  readonly slot: number
  readonly ended: number
  /** Requests in each slot, newest first, at most 120 slots. */
  readonly allowed: readonly number[]
  readonly rejected: readonly number[]
}

/**
 * Requests as clients see them, each counted once however many policies decided it: sums since the throttler's start. A request that passes
 * two throttlers counts at both. A request that is not counted (`skip`, `allow`, no policy applies) counts at neither. Requests that only a
 * dry run allowed count as allowed.
 */
export interface RequestsSnapshot {
  readonly allowed: number
  readonly rejected: number
  /** Rejected requests by reason. If several policies rejected, the reason comes from the policy with the longest wait. */
  readonly reasons: Readonly<Record<RequestRejection, number>>
  /** Requests of the last half hour. */
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
 * A sum of allowed requests or units that never decreases. The sum itself decreases when a counted request is cancelled, and monitoring
 * takes a smaller counter for a restart. So the shown value stays until the sum reaches it again.
 */
export function escalating(counts: { readonly allowed: number }): number {
  const most = Math.max(counts.allowed, shown.get(counts) ?? 0)
  shown.set(counts, most)
  return most
}
