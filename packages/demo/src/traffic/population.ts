import { seededRandom } from './random.ts'

/** A client, and how many requests it sends in each interval. */
export interface Client {
  readonly name: string
  readonly perInterval: number
}

/** A request to be sent. */
export interface PlannedRequest {
  /** Milliseconds since the traffic began. */
  readonly at: number
  readonly client: string
  readonly method: string
  readonly path: string
}

/** The client that sends too much, and by how much. */
export const ABUSER = 'mallory'
export const ABUSE = 5

const NAMES = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace', 'heidi']
const PATHS = ['/', '/orders', '/orders/42', '/search', '/users/7', '/status']

/** A steady population that uses between 20 and 60 % of its limit each, and one client at five times its limit. */
export function population(limit: number): readonly Client[] {
  const calm = NAMES.map((name, i) => ({ name, perInterval: Math.max(1, Math.floor(limit * (0.2 + (0.4 * i) / (NAMES.length - 1)))) }))
  // Below a limit of 2 nobody can send and stay within it, and still be more than silent: one request is the limit.
  return [...calm, { name: ABUSER, perInterval: ABUSE * limit }]
}

/** Limit for everyone together: what the population needs, with a third to spare, so that it rejects nobody. */
export function globalLimit(limit: number): number {
  const allowed = population(limit).reduce((sum, client) => sum + Math.min(client.perInterval, limit), 0)
  return Math.ceil((allowed * 4) / 3 / 10) * 10
}

/**
 * The requests of one interval, by time. Each client's are spread evenly with some jitter, so that what is offered per
 * interval is a fixed number and what comes out of a run can be checked against it.
 */
export function planInterval(clients: readonly Client[], ordinal: number, interval: number): PlannedRequest[] {
  const random = seededRandom(ordinal + 1)
  const planned: PlannedRequest[] = []
  // A hundredth of the interval stays free at its start and two at its end: a request that is sent in one interval and
  // arrives in the next would blur the figures of both.
  const usable = interval * 0.97
  for (const client of clients) {
    for (let i = 0; i < client.perInterval; i++) {
      const at = ordinal * interval + interval * 0.01 + (usable * (i + random())) / client.perInterval
      planned.push({ at, client: client.name, method: 'GET', path: PATHS[Math.floor(random() * PATHS.length)] as string })
    }
  }
  return planned.sort((a, b) => a.at - b.at)
}

/** A whole run's requests by time, one interval planned after the other. Times are milliseconds. */
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
