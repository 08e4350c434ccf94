import { seededRandom } from './random.ts'

/** A client with its number of requests in each interval. */
export interface Client {
  readonly name: string
  readonly perInterval: number
}

/** A request to send. */
export interface PlannedRequest {
  /** Milliseconds since the traffic began. */
  readonly at: number
  readonly client: string
  readonly method: string
  readonly path: string
}

/** The client that exceeds its limit, and the factor by which it does. */
export const ABUSER = 'mallory'
export const ABUSE = 5

const NAMES = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace', 'heidi']
const PATHS = ['/', '/orders', '/orders/42', '/search', '/users/7', '/status']

/** A steady population in which each client uses between 20 and 60 % of its limit, and one client that sends five times its limit. */
export function population(limit: number): readonly Client[] {
  const calm = NAMES.map((name, i) => ({ name, perInterval: Math.max(1, Math.floor(limit * (0.2 + (0.4 * i) / (NAMES.length - 1)))) }))
  // The minimum is one request. With a limit of 1 a client uses its whole limit.
  return [...calm, { name: ABUSER, perInterval: ABUSE * limit }]
}

/** Limit of all clients together: the need of the population and a third more, so that it rejects no request. */
export function globalLimit(limit: number): number {
  const allowed = population(limit).reduce((sum, client) => sum + Math.min(client.perInterval, limit), 0)
  return Math.ceil((allowed * 4) / 3 / 10) * 10
}

/**
 * The requests of one interval by time. Each client's requests are spread evenly with some jitter. The number per interval is fixed, so
 * the results of a run can be checked against it.
 */
export function planInterval(clients: readonly Client[], ordinal: number, interval: number): PlannedRequest[] {
  const random = seededRandom(ordinal + 1)
  const planned: PlannedRequest[] = []
  // Keeps 1 % of the interval free at its start and 2 % at its end. A request that is sent in one interval and arrives in the next would
  // change the figures of both.
  const usable = interval * 0.97
  for (const client of clients) {
    for (let i = 0; i < client.perInterval; i++) {
      const at = ordinal * interval + interval * 0.01 + (usable * (i + random())) / client.perInterval
      planned.push({ at, client: client.name, method: 'GET', path: PATHS[Math.floor(random() * PATHS.length)] as string })
    }
  }
  return planned.sort((a, b) => a.at - b.at)
}

/** All requests of a run by time, planned one interval at a time. Times are milliseconds. */
export function* plannedTraffic({
  limit,
  interval,
  duration = 0,
}: {
  readonly limit: number
  readonly interval: number
  readonly duration: number | undefined
}): Generator<PlannedRequest> {
  const clients = population(limit)
  for (let ordinal = 0; ordinal * interval < duration; ordinal++) {
    for (const request of planInterval(clients, ordinal, interval)) {
      if (request.at < duration) yield request
    }
  }
}
