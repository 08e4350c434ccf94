import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { systemClock } from '@weir/core'
import { serveIpc } from '@weir/core/ipc'
import { type Ordinal, ordinalAt, type StorePolicy } from '@weir/core/sync'
import { SEED } from '@weir/tooling/seed'
import { afterEach, expect, test, vi } from 'vitest'
import { IpcChild } from './ipc-child.ts'

vi.setConfig({ testTimeout: 120_000 })

const endings: (() => unknown)[] = []
const thrown: unknown[] = []
const hear = (reason: unknown): void => {
  thrown.push(reason)
}
process.on('unhandledRejection', hear)
process.on('uncaughtException', hear)
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
  expect(thrown.splice(0)).toEqual([])
})

const WIDTH = 600_000
const policy: StorePolicy = {
  id: `v1:fixed-window:background:${WIDTH}:user`,
  width: WIDTH,
  cells: 1,
  limit: 1_000,
  hot: 250,
  ttl: 2 * WIDTH,
}

function forkHostile(serialization: 'json' | 'advanced', ...args: string[]): ChildProcess {
  const child = fork(new URL('./fixtures/ipc-hostile.ts', import.meta.url), args, {
    execArgv: ['--import', 'tsx', '--conditions=@weir/source'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization,
  })
  endings.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  })
  return child
}

function done(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on('message', (message: { done?: boolean } | null) => {
      if (message?.done === true) resolve()
    })
  })
}

test.each(['json', 'advanced'] as const)('a hostile child (%s) ends nobody, and its sibling counts as before', async (serialization) => {
  const service = serveIpc()
  endings.push(() => service.close())
  const warnings: string[] = []
  const warned = (warning: Error & { code?: string }): void => {
    if (warning.code === 'WEIR_WARN_IPC_MESSAGE') warnings.push(warning.message)
  }
  process.on('warning', warned)
  endings.push(() => process.off('warning', warned))

  const sibling = new IpcChild()
  endings.push(() => sibling.kill())
  const node = await sibling.connect({ id: 'sibling', clock: systemClock, announced: () => {} })
  const beat = { ttl: 60_000, cursor: undefined, policies: [policy] }
  const ordinal = ordinalAt(Date.now(), WIDTH)
  let taken = 0
  const count = async (): Promise<void> => {
    taken++
    const ask = () =>
      node.sync({
        entries: [{ policy, key: 'honest', cells: [{ ordinal: ordinal as Ordinal, taken, given: 0 }] }],
        blocks: [],
        heartbeat: beat,
      })
    // A busy parent may answer late. Counts that are sent again count once.
    const { results } = await ask().catch(ask).catch(ask)
    expect(results[0]?.cells, `FC_SEED=${SEED}`).toEqual([{ ordinal, taken, given: 0 }])
  }
  await count()
  const child = forkHostile(serialization, `${SEED}`, serialization, '1500')
  const ended = done(child)
  let over = false
  void ended.then(() => {
    over = true
  })
  const before = process.memoryUsage().rss
  while (!over) {
    await count()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await count()
  expect(taken).toBeGreaterThan(3)
  expect(process.memoryUsage().rss - before).toBeLessThan(400 * 2 ** 20)
  expect(child.exitCode, 'the hostile child was rejected, not ended').toBe(null)
  // There is one warning of each kind, not a flood.
  expect(warnings.length).toBeGreaterThan(1)
  expect(warnings.length).toBeLessThan(12)
})

test('only children that open a store are served, and only those that are to be', async () => {
  const service = serveIpc({ children: [] })
  endings.push(() => service.close())
  const child = new IpcChild()
  endings.push(() => child.kill())
  const own = child.process.listenerCount('message')
  const connection = await child.connect({ id: 'late', clock: systemClock, announced: () => {} })
  const beat = { entries: [], blocks: [], heartbeat: { ttl: 60_000, cursor: undefined, policies: [] } }
  await expect(connection.sync(beat)).rejects.toMatchObject({ code: 'WEIR_STORE_TIMEOUT' })
  expect(child.process.listenerCount('message')).toBe(own)
  service.attach(child.process)
  expect((await connection.sync(beat)).heartbeat?.nodes).toBe(1)
})

test('a child that asks and never reads does not fill its parent', async () => {
  const service = serveIpc({ children: [] })
  endings.push(() => service.close())
  const sent: unknown[] = []
  const listeners = new Map<string, (value: unknown) => void>()
  // A channel whose other end reads nothing, so no callback is ever called.
  const child = {
    pid: 1,
    connected: true,
    on: (name: string, listener: (value: unknown) => void) => listeners.set(name, listener),
    off: (name: string) => listeners.delete(name),
    send: (message: unknown) => {
      sent.push(message)
      return false
    },
  } as unknown as ChildProcess
  service.attach(child)
  const packed = { time: null, policies: [], entries: [], blocks: [], heartbeat: { ttl: 4_000, cursor: null, policies: [] } }
  for (let id = 0; id < 5_000; id++) {
    listeners.get('message')?.({ '@weir/ipc': 1, message: { kind: 'request', node: 'n', id, request: packed } })
  }
  expect(sent).toHaveLength(1_000)
  for (let i = 0; i < 1_000; i++) {
    listeners.get('message')?.({ '@weir/ipc': 1, message: { kind: 'join', node: `n${i}` } })
  }
  listeners.get('disconnect')?.(undefined)
  expect(listeners.size).toBe(0)
})
