import { awaitOne } from '@weir/testing/store-tests/awaited'
import { postgresStore } from '../../src/index.ts'

await awaitOne((address, timeout) => ({ store: postgresStore(address, { timeout }) }))
