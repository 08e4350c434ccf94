import { awaitOne } from '@weir/store-tests/awaited'
import { postgresStore } from '../../src/index.ts'

await awaitOne((address, timeout) => ({ store: postgresStore(address, { timeout }) }))
