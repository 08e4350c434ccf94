import type { ExactResult } from './exact.ts'

/** One client that either of the two refused. */
export interface ClientComparison {
  readonly client: string
  readonly requests: number
  readonly refused: number
  /** Of these: refused without the store, whose answer was overdue. */
  readonly degraded: number
  readonly exactRefused: number
}

export interface Comparison {
  /** Most refused first. */
  readonly clients: readonly ClientComparison[]
  readonly clientsRefused: number
  readonly exactClientsRefused: number
  /** Whether both refused the very same clients. */
  readonly sameClients: boolean
  readonly requestsRefused: number
  /** Of these: refused without the store. */
  readonly requestsDegraded: number
  readonly exactRequestsRefused: number
}

/** Puts what the gateways refused beside what an exact limiter would have. */
export function compare(
  requests: ReadonlyMap<string, number>,
  refused: ReadonlyMap<string, number>,
  degraded: ReadonlyMap<string, number>,
  exact: ExactResult,
): Comparison {
  const clients = [...new Set([...refused.keys(), ...exact.clients.keys()])]
    .map((client) => ({
      client,
      requests: requests.get(client) ?? 0,
      refused: refused.get(client) ?? 0,
      degraded: degraded.get(client) ?? 0,
      exactRefused: exact.clients.get(client) ?? 0,
    }))
    .sort((a, b) => Math.max(b.refused, b.exactRefused) - Math.max(a.refused, a.exactRefused) || (a.client < b.client ? -1 : 1))
  return {
    clients,
    clientsRefused: clients.filter((client) => client.refused > 0).length,
    exactClientsRefused: exact.clients.size,
    sameClients: clients.every((client) => client.refused > 0 === client.exactRefused > 0),
    requestsRefused: clients.reduce((sum, client) => sum + client.refused, 0),
    requestsDegraded: clients.reduce((sum, client) => sum + client.degraded, 0),
    exactRequestsRefused: exact.refused,
  }
}
