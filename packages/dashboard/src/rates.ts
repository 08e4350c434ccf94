import type { ClusterNode, RequestRejection } from '@weir/core/inspect'

export interface Rate {
  readonly allowed: number
  readonly rejected: number
}

type Sums = ReadonlyMap<string, number>

interface Sample {
  /** Time of the sums in milliseconds. */
  readonly at: number
  readonly sums: Sums
}

interface Seen {
  /** Oldest first. They cover the window. */
  readonly samples: Sample[]
  /** Rates for the time until there are two samples. */
  readonly first: Sums
}

/** Milliseconds over which all rates are measured, so that cards, tables and charts agree. */
const WINDOW = 5_000
/** Milliseconds. Processes report at most once a second, so sums closer together are the same report. */
const SAME_REPORT = 250
/** Age in milliseconds after which a process's report no longer shows its current rate. */
export const STALE = 5_000

/** Rates per second over the last five seconds, by process, policy and reason. Stale processes don't count. */
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
      const samples = this.#seen.get(node)?.samples ?? []
      if (at - (samples.at(-1)?.at ?? Number.NEGATIVE_INFINITY) < SAME_REPORT) continue
      // Samples from before a pause, such as an outage, would make an average of it.
      while (samples.length > 0 && (samples[0] as Sample).at < at - 2 * WINDOW) samples.shift()
      while (samples.length > 1 && (samples[1] as Sample).at <= at - WINDOW) samples.shift()
      samples.push({ at, sums: sumsOf(told) })
      this.#seen.set(node, { samples, first: remembered(told) })
    }
    for (const node of this.#seen.keys()) if (!live.has(node)) this.#seen.delete(node)
  }

  /** Whether the current rate of the process is known. */
  knows(node: string): boolean {
    const seen = this.#seen.get(node)
    return seen !== undefined && !this.#isStale(seen) && (seen.samples.length > 1 || seen.first.size > 0)
  }

  /** Rate of requests at one process. */
  ofNode(node: string): Rate {
    const seen = this.#seen.get(node)
    const read = (name: string): number => (seen === undefined ? 0 : this.#rate(seen, name))
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
    for (const seen of this.#seen.values()) sum += this.#rate(seen, name)
    return sum
  }

  #rate(seen: Seen, name: string): number {
    if (this.#isStale(seen)) return 0
    const [from, to] = [seen.samples[0] as Sample, seen.samples.at(-1) as Sample]
    if (from === to) return seen.first.get(name) ?? 0
    const [before, sum] = [from.sums.get(name), to.sums.get(name)]
    return before === undefined || sum === undefined ? 0 : (Math.max(0, sum - before) / (to.at - from.at)) * 1_000
  }

  #isStale({ samples }: Seen): boolean {
    return this.#now - (samples.at(-1) as Sample).at > STALE
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
