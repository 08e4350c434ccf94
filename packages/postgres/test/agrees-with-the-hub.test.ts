import { agreesWithTheHub } from '@weir/testing/store-tests/agrees-with-the-hub'
import { test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const here = sharedServer()
const schema = freshSchema()

describe('PostgreSQL and the hub', () => {
  test('random requests bring from PostgreSQL what they bring from the hub', { timeout: 120_000 }, () =>
    agreesWithTheHub({
      open: () => postgresStore(here.server.url, { schema, publish: false, timeout: 30_000 }),
      shared: true,
      runs: 40,
      within: 60_000,
    }),
  )
})
