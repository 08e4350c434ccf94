import type { RequestReader } from '../../src/http/request/reader.ts'
import { anyReadings } from '../../src/http/request/readings.ts'

/** A request as plain data. */
export interface FakeRequest {
  readonly method?: string
  readonly path?: string
  readonly route?: string
  readonly ip?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly user?: unknown
}

export const fakeReader: RequestReader<FakeRequest> = {
  method: (request) => request.method ?? 'GET',
  path: (request) => request.path ?? '/',
  readings: anyReadings,
  route: (request) => request.route,
  ip: (request) => request.ip,
  // The client has disconnected, so that requests without an address cause no warning.
  socket: () => ({ destroyed: true }),
  header: (request, name) => request.headers?.[name],
}
