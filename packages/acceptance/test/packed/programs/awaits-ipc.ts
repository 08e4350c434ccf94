import { ipcStore } from '@weir/core/ipc'
import { awaitOne } from '@weir/testing/store-tests/awaited'

// The timeout is long, because the parent runs the tests and may answer only after seconds on a busy machine.
await awaitOne((_address, patience) => ({ store: ipcStore({ timeout: patience }) }))
