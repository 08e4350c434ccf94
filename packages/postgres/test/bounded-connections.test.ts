import { boundedConnections } from '@weir/testing/store-tests/bounded-connections'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

describe('with PostgreSQL', () => {
  const here = sharedServer()
  const schema = freshSchema()

  boundedConnections(
    'pg',
    () => here.server,
    (port, timeout) => postgresStore(`postgres://postgres@127.0.0.1:${port}/postgres`, { schema, timeout }),
  )
})
