import type { Answer } from './sender.ts'

/** Requests allowed, rejected, and failed. */
export interface Count {
  allowed: number
  rejected: number
  errors: number
}

/** Counts of one interval. Intervals follow the epoch. */
export interface IntervalTally {
  readonly ordinal: number
  readonly total: Count
  readonly clients: Map<string, Count>
  /** Milliseconds by which its latest request was late. */
  latest: number
}

const nothing = (): Count => ({ allowed: 0, rejected: 0, errors: 0 })

/**
 * Counts answers as the clients get them: per gateway, per interval and per client. A request belongs to the interval in which it
 * reached its gateway.
 */
export class Tally {
  readonly interval: number
  readonly gateways: readonly Count[]
  readonly clients = new Map<string, Count>()
  /** Requests of each client that were rejected without the store. */
  readonly storeDown = new Map<string, number>()
  /** Milliseconds by which the latest request was late. A machine that is too busy does not send the planned traffic. */
  latest = 0
  readonly #intervals = new Map<number, IntervalTally>()

  constructor(gateways: number, interval: number) {
    this.interval = interval
    this.gateways = Array.from({ length: gateways }, nothing)
  }

  add({ gateway, client, status, arrived, late, storeDown }: Answer): void {
    this.latest = Math.max(this.latest, late)
    if (storeDown) this.storeDown.set(client, (this.storeDown.get(client) ?? 0) + 1)
    const outcome = status === 429 ? 'rejected' : status >= 200 && status < 400 ? 'allowed' : 'errors'
    const interval = this.at(Math.floor(arrived / this.interval))
    interval.latest = Math.max(interval.latest, late)
    ;(this.gateways[gateway] as Count)[outcome]++
    interval.total[outcome]++
    countOf(interval.clients, client)[outcome]++
    countOf(this.clients, client)[outcome]++
  }

  /** The tally of an interval. Empty if no request arrived in it. */
  at(ordinal: number): IntervalTally {
    let interval = this.#intervals.get(ordinal)
    if (interval === undefined) this.#intervals.set(ordinal, (interval = { ordinal, total: nothing(), clients: new Map(), latest: 0 }))
    return interval
  }

  /** All intervals with a request, by time. */
  intervals(): readonly IntervalTally[] {
    return [...this.#intervals.values()].filter(({ clients }) => clients.size > 0).sort((a, b) => a.ordinal - b.ordinal)
  }

  total(): Count {
    return sum(this.gateways)
  }
}

export function sum(counts: Iterable<Count>): Count {
  const total = nothing()
  for (const count of counts) {
    total.allowed += count.allowed
    total.rejected += count.rejected
    total.errors += count.errors
  }
  return total
}

function countOf(counts: Map<string, Count>, key: string): Count {
  let count = counts.get(key)
  if (count === undefined) counts.set(key, (count = nothing()))
  return count
}
