import type { ExactResult } from './exact.ts'

/** A client that the gateways or the exact limiter rejected. */
export interface ClientComparison {
  readonly client: string
  readonly requests: number
  readonly rejected: number
  /** Rejected requests that were decided without the store, because its answer was overdue. */
  readonly storeDown: number
  readonly exactRejected: number
}

export interface Comparison {
  /** Most rejected first. */
  readonly clients: readonly ClientComparison[]
  readonly clientsRejected: number
  readonly exactClientsRejected: number
  /** Whether both rejected exactly the same clients. */
  readonly sameClients: boolean
  readonly requestsRejected: number
  /** Rejected requests that were decided without the store. */
  readonly requestsStoreDown: number
  readonly exactRequestsRejected: number
}

/** Compares the rejections of the gateways with the rejections of an exact limiter. */
export function compare(
  requests: ReadonlyMap<string, number>,
  rejected: ReadonlyMap<string, number>,
  storeDown: ReadonlyMap<string, number>,
  exact: ExactResult,
): Comparison {
  const clients = [...new Set([...rejected.keys(), ...exact.clients.keys()])]
    .map((client) => ({
      client,
      requests: requests.get(client) ?? 0,
      rejected: rejected.get(client) ?? 0,
      storeDown: storeDown.get(client) ?? 0,
      exactRejected: exact.clients.get(client) ?? 0,
    }))
    .sort((a, b) => Math.max(b.rejected, b.exactRejected) - Math.max(a.rejected, a.exactRejected) || (a.client < b.client ? -1 : 1))
  return {
    clients,
    clientsRejected: clients.filter((client) => client.rejected > 0).length,
    exactClientsRejected: exact.clients.size,
    sameClients: clients.every((client) => client.rejected > 0 === client.exactRejected > 0),
    requestsRejected: clients.reduce((sum, client) => sum + client.rejected, 0),
    requestsStoreDown: clients.reduce((sum, client) => sum + client.storeDown, 0),
    exactRequestsRejected: exact.rejected,
  }
}
