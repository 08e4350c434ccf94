import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type IpcService, serveIpc } from '@weir/core/ipc'
import { alone, OF_STORES, promisesSettle } from '@weir/testing/store-tests/promises-settle'

let service: IpcService | undefined

promisesSettle({
  directory: fileURLToPath(new URL('../..', import.meta.url)),
  program: 'test/packed/programs/awaits-ipc.ts',
  external: [],
  start: async () => {
    service = serveIpc({ children: [] })
    return { url: '', pause: () => service?.close(), stop: async () => service?.close() }
  },
  urlAt: () => '',
  only: (name) => OF_STORES(name) && !/rules/.test(name),
  // A child of a parent that serves it, one of a parent that answers nothing, and a process without a parent to send to.
  run: ([file = '', ...args], state) => {
    if (state === 'down') return alone([file, ...args])
    const child = fork(file, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] })
    if (state === 'up') service?.attach(child)
    return child
  },
})
