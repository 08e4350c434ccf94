import type { AcquireFailure } from './acquire-error.ts'
import { type Answer, type Counter, named } from './line.ts'

/** The requests that wait for one counter of a policy. */
export interface WaitingKey {
  readonly policy: string
  readonly key: string
  readonly requests: number
  /** Milliseconds for which the one has waited that came first. */
  readonly longest: number
}

/** The requests that wait at one moment. */
export interface WhoWaits {
  /** How many wait for each policy; those are left out that nobody waits for. */
  readonly policies: ReadonlyMap<string, number>
  /** For whom, those first that have waited longest; of very many keys some. */
  readonly keys: readonly WaitingKey[]
  /** Requests that did not go, since the throttler's start. */
  readonly failures: Readonly<Record<AcquireFailure, number>>
}

/** Sums about requests that wait, kept up as they come and go. */
export class Waits {
  readonly policies: Map<string, number> = new Map()
  readonly failures: Record<AcquireFailure, number> = { timeout: 0, aborted: 0, 'queue-full': 0, 'never-fits': 0, closed: 0 }

  /** So many more wait for a policy. A request that no policy has rejected yet waits for none. */
  add(policy: string, requests: number): void {
    if (policy === '' || requests === 0) return
    const now = (this.policies.get(policy) ?? 0) + requests
    if (now === 0) this.policies.delete(policy)
    else this.policies.set(policy, now)
  }
}

/** The keys whose requests wait in lines, of at most so many counters. */
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
