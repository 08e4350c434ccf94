import type { ClusterNode, RequestRejection } from '@weir/core/inspect'

export interface Rate {
  readonly allowed: number
  readonly rejected: number
}

type Sums = ReadonlyMap<string, number>

interface Seen {
  /** Time of the sums in milliseconds. */
  readonly at: number
  readonly sums: Sums
  readonly rates: Sums
}

/** Milliseconds. Processes report at most once a second, so sums closer together are the same report. */
const SAME_REPORT = 250
/** Age in milliseconds after which a process's report no longer shows its current rate. */
export const STALE = 5_000

/** Rates per second from counters, by process, policy and reason. Stale processes don't count. */
export class Rates {
  readonly #seen = new Map<string, Seen>()
  #now = 0

  /** Adds the newest counters of the processes. `now` is in milliseconds. Processes that are no longer live are removed. */
  update(nodes: readonly ClusterNode[], now: number): void {
    this.#now = now
    const live = new Set<string>()
    for (const told of nodes) {
      const { node, ageMs: age } = told
      live.add(node)
      const at = now - age
      const before = this.#seen.get(node)
      if (before !== undefined && at - before.at < SAME_REPORT) continue
      const sums = sumsOf(told)
      this.#seen.set(node, { at, sums, rates: before === undefined ? remembered(told) : rates(before, sums, (at - before.at) / 1_000) })
    }
    for (const node of this.#seen.keys()) if (!live.has(node)) this.#seen.delete(node)
  }

  /** Whether there are enough reports for a rate of the process. */
  knows(node: string): boolean {
    return (this.#seen.get(node)?.rates.size ?? 0) > 0
  }

  /** Rate of requests at one process. */
  ofNode(node: string): Rate {
    const seen = this.#seen.get(node)
    const read = (name: string): number => (seen === undefined || this.#isStale(seen) ? 0 : (seen.rates.get(name) ?? 0))
    return { allowed: read('allowed'), rejected: read('rejected') }
  }

  /** Rate of units allowed and requests rejected by one policy, at all processes. */
  ofPolicy(policy: string): Rate {
    return { allowed: this.#sum(`units ${policy}`), rejected: this.#sum(`rejected ${policy}`) }
  }

  /** Rate of requests rejected for one reason, at all processes. */
  ofReason(reason: RequestRejection): number {
    return this.#sum(`because ${reason}`)
  }

  #sum(name: string): number {
    let sum = 0
    for (const seen of this.#seen.values()) if (!this.#isStale(seen)) sum += seen.rates.get(name) ?? 0
    return sum
  }

  #isStale({ at }: Seen): boolean {
    return this.#now - at > STALE
  }
}

/** The first rate after a single report: the requests of the last 15 seconds in its history. */
function remembered({ requests: { history } }: ClusterNode): Sums {
  if (history.allowed.length === 0) return new Map()
  const each = (counts: readonly number[]): number => ((counts[0] ?? 0) / history.slot) * 1_000
  return new Map([
    ['allowed', each(history.allowed)],
    ['rejected', each(history.rejected)],
  ])
}

function sumsOf({ requests, policies }: ClusterNode): Sums {
  const sums = new Map<string, number>()
  sums.set('allowed', requests.allowed)
  sums.set('rejected', requests.rejected)
  for (const [reason, count] of Object.entries(requests.reasons)) sums.set(`because ${reason}`, count)
  for (const { name, allowed, rejected } of policies) sums.set(`units ${name}`, allowed).set(`rejected ${name}`, rejected)
  return sums
}

function rates({ sums: before }: Seen, sums: Sums, seconds: number): Sums {
  const found = new Map<string, number>()
  for (const [name, sum] of sums) {
    const then = before.get(name)
    if (then !== undefined) found.set(name, Math.max(0, sum - then) / seconds)
  }
  return found
}
