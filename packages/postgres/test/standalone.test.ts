import { storeContract } from '@weir/testing'
import { test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, postgresFixtures, sharedServer, tablesOf } from './server.ts'

const here = sharedServer()

storeContract(
  'postgresStore by URL, emptied and hanging',
  postgresFixtures(
    (schema) => postgresStore(here.server.url, { schema, timeout: 1500 }),
    here,
    (schema) => ({
      lose: async () => void (await here.server.sql(`TRUNCATE ${tablesOf(schema)}`)),
      goAway: async () => {
        here.server.pause()
        return () => here.server.resume()
      },
    }),
  ),
  { describe, test },
)
