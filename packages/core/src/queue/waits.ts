import type { AcquireFailure } from './acquire-error.ts'
import { type Answer, type Counter, named } from './line.ts'

/** The requests that wait for one counter of a policy. */
export interface WaitingKey {
  readonly policy: string
  readonly key: string
  readonly requests: number
  /** Milliseconds that the first request has waited. */
  readonly longest: number
}

/** The requests that wait at one moment. */
export interface WaitingRequests {
  /** Number of waiting requests for each policy. Policies without one are left out. */
  readonly policies: ReadonlyMap<string, number>
  /** The keys with waiting requests, longest wait first. If there are very many keys, only some of them. */
  readonly keys: readonly WaitingKey[]
  /** Failed requests since the throttler's start. */
  readonly failures: Readonly<Record<AcquireFailure, number>>
}

/** Counts of waiting and failed requests, updated with each change. */
export class Waits {
  readonly policies: Map<string, number> = new Map()
  readonly failures: Record<AcquireFailure, number> = { timeout: 0, aborted: 0, 'queue-full': 0, 'never-fits': 0, closed: 0 }

  /** Adds to the requests that wait for a policy. A request that no policy has rejected yet waits for none. */
  add(policy: string, requests: number): void {
    if (policy === '' || requests === 0) return
    const now = (this.policies.get(policy) ?? 0) + requests
    if (now === 0) this.policies.delete(policy)
    else this.policies.set(policy, now)
  }
}

/** The keys whose requests wait in lines, of at most `most` counters. */
export function inLines<D extends Answer>(counters: Iterable<Counter<D>>, now: number, most: number): WaitingKey[] {
  const keys: WaitingKey[] = []
  let left = most
  for (const { id, policy, lines } of counters) {
    if (left-- === 0) break
    let requests = 0
    let since = now
    for (let line = lines.first; line !== undefined; line = line.after) {
      requests += line.size
      since = Math.min(since, line.since)
    }
    if (policy !== '' && requests > 0) keys.push({ ...named(id), requests, longest: now - since })
  }
  return keys
}
