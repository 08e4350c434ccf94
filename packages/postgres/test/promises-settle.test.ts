import { fileURLToPath } from 'node:url'
import { OF_STORES, promisesSettle } from '@weir/testing/store-tests/promises-settle'
import { PostgresServer } from '@weir/tooling/postgres-servers'
import { describe } from './server.ts'

describe('with PostgreSQL', () => {
  promisesSettle({
    directory: fileURLToPath(new URL('..', import.meta.url)),
    program: 'test/programs/awaits.ts',
    external: ['pg'],
    start: () => PostgresServer.start(),
    urlAt: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    only: (name) => OF_STORES(name) && !/rules/.test(name),
  })
})
