/** One request as it arrived. */
export interface Arrival {
  readonly client: string
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** The rejections of a central counter that decides every request. */
export interface ExactResult {
  readonly rejected: number
  /** Rejected requests of each client with a rejection. */
  readonly clients: ReadonlyMap<string, number>
}

/**
 * An exact limiter: a fixed window aligned to the epoch, with one counter per client and interval and no cooldown. The order within an
 * interval does not change the number of rejections, so arrivals need no sorting.
 */
export function exactFixedWindow(arrivals: Iterable<Arrival>, limit: number, interval: number): ExactResult {
  const counts = new Map<string, Map<number, number>>()
  const clients = new Map<string, number>()
  let rejected = 0
  for (const { client, time } of arrivals) {
    let own = counts.get(client)
    if (own === undefined) counts.set(client, (own = new Map()))
    const ordinal = Math.floor(time / interval)
    const count = (own.get(ordinal) ?? 0) + 1
    own.set(ordinal, count)
    if (count <= limit) continue
    rejected++
    clients.set(client, (clients.get(client) ?? 0) + 1)
  }
  return { rejected, clients }
}
