import { ipcStore } from '@weir/core/ipc'
import { awaitOne } from '@weir/testing/store-tests/awaited'

// The parent runs the tests: on a busy machine it answers only after seconds.
await awaitOne((_address, patience) => ({ store: ipcStore({ timeout: patience }) }))
