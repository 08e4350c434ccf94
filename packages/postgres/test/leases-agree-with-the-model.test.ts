import { grantsAsTheModel } from '@weir/testing/store-tests/leases'
import { test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const here = sharedServer()
const schema = freshSchema()

describe('quota taken ahead', () => {
  test.each(['interval', 'none'] as const)('the function does what the model does, step by step, of %s', { timeout: 90_000 }, (of) =>
    grantsAsTheModel(postgresStore(here.server.url, { schema, timeout: 30_000 }), of, { runs: 40, within: 40_000 }),
  )
})
