import { ipcStore } from '@weir/core/ipc'
import { awaitOne } from '@weir/store-tests/awaited'

await awaitOne(() => ({ store: ipcStore({ timeout: 500 }) }))
