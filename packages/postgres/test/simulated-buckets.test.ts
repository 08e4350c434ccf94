import { answersAsSimulated, SCENARIOS } from '@weir/store-tests/simulated-buckets'
import { test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer, tablesOf } from './server.ts'

const here = sharedServer()
const schema = freshSchema()

describe('exchanges of simulated clusters', () => {
  test.each(Object.entries(SCENARIOS))('%s: PostgreSQL answers each exchange as the store of the simulation', async (_name, scenario) => {
    await answersAsSimulated(postgresStore(here.server.url, { schema, publish: false, timeout: 10_000 }), scenario)
    await here.server.sql(`TRUNCATE ${tablesOf(schema)}`)
  })
})
