import { serveIpc } from '@weir/core/ipc'
import type { Hub } from '@weir/core/memory'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { storeContract } from '../src/index.ts'
import { IpcChild } from './ipc-child.ts'

/** The hub of this process, read from the place where core stores it. */
function hub(): Hub {
  return (globalThis as unknown as Record<symbol, { hub: Hub }>)[Symbol.for('@weir/core/ipc/1')]?.hub as Hub
}

let children: IpcChild[] = []
beforeAll(() => {
  children = [new IpcChild(), new IpcChild(), new IpcChild()]
})
afterAll(async () => {
  for (const child of children) await child.kill()
})

storeContract(
  'ipcStore in three child processes',
  () => {
    // The children are older than each of these services, so they are attached.
    let service = serveIpc()
    for (const child of children) service.attach(child.process)
    let next = 0
    return {
      connect: (node) => (children[next++ % children.length] as IpcChild).connect(node),
      lose: () => hub().lose(),
      leftovers: () => (hub().size === 0 ? [] : [`${hub().size} items`]),
      goAway: async () => {
        service.close()
        return () => {
          service = serveIpc()
          for (const child of children) service.attach(child.process)
        }
      },
      close: () => service.close(),
    }
  },
  { describe, test },
)
