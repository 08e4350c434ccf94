import type { RequestReader } from '../../src/http/request/reader.ts'

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
  route: (request) => request.route,
  ip: (request) => request.ip,
  header: (request, name) => request.headers?.[name],
}
