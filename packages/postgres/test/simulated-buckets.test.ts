import { answersAsSimulated, SCENARIOS } from '@weir/testing/store-tests/simulated-buckets'
import { test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const here = sharedServer()

describe('exchanges of simulated clusters', () => {
  // Hundreds of syncs in sequence, on a machine that may be busy.
  test.each(Object.entries(SCENARIOS))(
    '%s: PostgreSQL answers each exchange as the store of the simulation',
    { timeout: 120_000 },
    (_name, scenario) =>
      answersAsSimulated(postgresStore(here.server.url, { schema: freshSchema(), publish: false, timeout: 30_000 }), scenario),
  )
})
