import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { outOfFiles } from '@weir/tooling/out-of-files'
import { expect, test, vi } from 'vitest'
import { EPOCH_STEP } from '../../src/algorithms/fixed-window/epoch-step.ts'
import type { Hub } from '../../src/hub/hub.ts'
import { pack, packDecide, seal } from '../../src/ipc/envelope.ts'
import { warnings } from '../support/nodes.ts'

/** A child process that requests decisions from its parent. */
function child() {
  const sent: { readonly message: { readonly kind: string; readonly id: number; readonly message?: string } }[] = []
  const process = Object.assign(new EventEmitter(), {
    pid: 1,
    connected: true,
    send: (message: never, _handle: unknown, _options: unknown, done: () => void) => {
      sent.push(message)
      done()
    },
  })
  const ask = (id: number): void => {
    const now = Date.now()
    const policy = { id: 'p', step: EPOCH_STEP, parameters: [60_000] }
    const questions = [{ policy, key: 'k', kind: 'take', units: 1, limit: 10, at: now }] as const
    process.emit('message', seal({ kind: 'ask', node: 'n', id, ask: packDecide({ sequence: id, time: now, questions }) }))
  }
  const exchange = (id: number): void => {
    process.emit('message', seal({ kind: 'request', node: 'n', id, request: pack({ entries: [], blocks: [] }) }))
  }
  return { process: process as unknown as ChildProcess, sent, ask, exchange }
}

test('a parent that fails at a request says so at once, and stays', async () => {
  const { serveIpc, servedHub } = await import('../../src/ipc/serve.ts')
  const { process, sent, exchange } = child()
  const service = serveIpc({ children: [process] })
  try {
    vi.spyOn(servedHub() as Hub, 'exchange').mockImplementationOnce(() => {
      throw new Error('no room')
    })
    exchange(1)
    exchange(2)
    expect(sent).toMatchObject([{ message: { kind: 'failure', id: 1 } }, { message: { kind: 'reply', id: 2 } }])
  } finally {
    service.close()
  }
})

test('a parent that can not decide yet says so at once, and decides as soon as it can', async () => {
  // As in a process that has not received a child's request yet.
  vi.resetModules()
  const { serveIpc } = await import('../../src/ipc/serve.ts')
  const files = outOfFiles()
  const warned = warnings()
  const { process, sent, ask } = child()
  const service = serveIpc({ children: [process] })
  try {
    for (const id of [1, 2]) {
      ask(id)
      await vi.waitFor(() => expect(sent).toHaveLength(id), 20_000)
    }
    expect(sent).toMatchObject([{ message: { kind: 'failure', id: 1 } }, { message: { kind: 'failure', id: 2 } }])
    await vi.waitFor(() => expect(warned).toMatchObject([{ code: 'WEIR_NOT_LOADED' }]))
    files.end()
    let id = 2
    await vi.waitFor(
      async () => {
        ask(++id)
        await vi.waitFor(() => expect(sent).toHaveLength(id), 20_000)
        expect(sent.at(-1)).toMatchObject({ message: { kind: 'verdicts', id } })
      },
      { timeout: 10_000, interval: 20 },
    )
    expect(warned).toMatchObject([{ code: 'WEIR_NOT_LOADED' }])
  } finally {
    service.close()
  }
})
