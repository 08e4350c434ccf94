import type { Request } from './trace-file.ts'

export type Window = 'fixed' | 'sliding'

/** Decides one request after the other. Returns true if the request is allowed. */
export type Limiter = (request: Request) => boolean

/** An exact limiter per client: a counter for each interval since the Unix epoch, or a log of allowed requests. */
export function exactLimiter(window: Window, limit: number, interval: number): Limiter {
  return window === 'fixed' ? alignedCounters(limit, interval) : logs(limit, interval)
}

function alignedCounters(limit: number, interval: number): Limiter {
  const counters = new Map<string, { ordinal: number; count: number }>()
  return ({ time, client }) => {
    const ordinal = Math.floor(time / interval)
    let counter = counters.get(client)
    if (counter === undefined || counter.ordinal !== ordinal) counters.set(client, (counter = { ordinal, count: 0 }))
    return ++counter.count <= limit
  }
}

/** Allows a request if fewer than `limit` allowed requests are in (time − interval, time]. */
function logs(limit: number, interval: number): Limiter {
  const byClient = new Map<string, number[]>()
  return ({ time, client }) => {
    const log = (byClient.get(client) ?? []).filter((at) => at > time - interval)
    byClient.set(client, log)
    if (log.length >= limit) return false
    log.push(time)
    return true
  }
}

/** Rejected clients and requests. */
export interface Rejected {
  readonly clients: number
  readonly requests: number
}

export function rejectedOf(requests: readonly Request[], decisions: readonly boolean[]): Rejected {
  const clients = new Set<string>()
  let rejected = 0
  requests.forEach(({ client }, index) => {
    if (decisions[index] !== false) return
    rejected++
    clients.add(client)
  })
  return { clients: clients.size, requests: rejected }
}
