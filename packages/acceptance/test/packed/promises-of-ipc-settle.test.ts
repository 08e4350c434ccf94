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
  // The states: `up` is a child that its parent serves. In `down` there is no parent to send to. Otherwise the parent never answers.
  run: ([file = '', ...args], state) => {
    if (state === 'down') return alone([file, ...args])
    const child = fork(file, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] })
    if (state === 'up') service?.attach(child)
    return child
  },
})
