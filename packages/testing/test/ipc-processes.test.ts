import { type ChildProcess, fork, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { memoryStore, systemClock } from '@weir/core'
import { ipcStore, serveIpc } from '@weir/core/ipc'
import { afterEach, expect, test, vi } from 'vitest'
import { IpcChild } from './ipc-child.ts'

const PATIENCE = { timeout: 15_000, interval: 20 }
const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

const beat = { entries: [], blocks: [], heartbeat: { ttl: 60_000, cursor: undefined, policies: [] } }
const node = (id: string) => ({ id, clock: systemClock, announced: () => {} })

function forkChild(): IpcChild {
  const child = new IpcChild()
  endings.push(() => child.kill())
  return child
}

function serve(): ReturnType<typeof serveIpc> {
  const service = serveIpc()
  endings.push(() => service.close())
  return service
}

function runFixture(name: string): { child: ChildProcess; output: string[] } {
  const file = new URL(`./fixtures/${name}`, import.meta.url).pathname
  const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=@weir/source', file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const output: string[] = []
  child.stdout?.setEncoding('utf8').on('data', (text: string) => output.push(...text.split('\n').filter((line) => line !== '')))
  endings.push(() => child.kill('SIGKILL'))
  return { child, output }
}

test('a child that is killed leaves nothing behind in the parent', { timeout: 30_000 }, async () => {
  serve()
  const own = ipcStore().open(node('own'))
  endings.push(() => own.close())
  const child = forkChild()
  const connection = await child.connect(node('child'))
  await connection.sync(beat)
  expect((await own.sync(beat)).heartbeat?.nodes).toBe(2)
  const listeners = child.process.listenerCount('message')
  await child.kill()
  await vi.waitFor(async () => expect((await own.sync(beat)).heartbeat?.nodes).toBe(1), PATIENCE)
  expect(child.process.listenerCount('message')).toBe(listeners - 1)
})

test('a parent that does not serve is missed once, not at each exchange', { timeout: 30_000 }, async () => {
  const child = forkChild()
  const connection = await child.connect(node('alone'))
  for (let i = 0; i < 3; i++) await expect(connection.sync(beat)).rejects.toMatchObject({ code: 'WEIR_STORE_TIMEOUT' })
  await vi.waitFor(() => expect(child.warnings).toEqual(['WEIR_STORE_TIMEOUT']), PATIENCE)
})

test('a child whose parent fails at its questions decides by "failMode", without waiting for the storeTimeout', {
  timeout: 30_000,
}, async () => {
  const execArgv = ['--import', 'tsx', '--conditions=@weir/source']
  const child = fork(new URL('./fixtures/ipc-denied.ts', import.meta.url), { execArgv })
  endings.push(() => child.kill('SIGKILL'))
  const send = child.send.bind(child)
  // The parent's side of the channel. It receives everything except requests for decisions.
  const served = Object.assign(new EventEmitter(), { pid: child.pid, connected: true, send })
  const service = serveIpc({ children: [served as ChildProcess] })
  endings.push(() => service.close())
  const decided = new Promise((resolve) => {
    child.on('message', (value: { message?: { kind: string; node: string; id: number } }) => {
      if (value.message === undefined) resolve(value)
      else if (value.message.kind !== 'ask') served.emit('message', value)
      else send({ ...value, message: { ...value.message, kind: 'failure', message: 'It fails.' } })
    })
  })
  expect(await decided).toEqual({ open: ['allowed', 'allowed'], closed: ['storeDown', 'storeDown'], share: ['allowed', 'storeDown'] })
})

test('an open store does not keep a child alive', { timeout: 30_000 }, async () => {
  serve()
  const child = forkChild()
  const connection = await child.connect(node('resting'))
  await connection.sync(beat)
  const exited = once(child.process, 'exit')
  void child.run({ do: 'rest' }).catch(() => undefined)
  expect(await exited).toEqual([0, null])
})

test('a child whose parent is killed goes on alone, and says so once', { timeout: 30_000 }, async () => {
  const { child: parent, output } = runFixture('ipc-parent.ts')
  await vi.waitFor(() => expect(output).toEqual(expect.arrayContaining(['synced', expect.stringMatching(/^child /)])), PATIENCE)
  const pid = Number(output.find((line) => line.startsWith('child '))?.slice(6))
  endings.push(() => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // The process has already ended. The test fails for that anyway.
    }
  })
  parent.kill('SIGKILL')
  await vi.waitFor(() => expect(output.filter((line) => line === 'WEIR_STORE_UNAVAILABLE').length).toBeGreaterThan(3), PATIENCE)
  expect(output.filter((line) => line.startsWith('warning'))).toHaveLength(1)
  expect(process.kill(pid, 0)).toBe(true)
})

test('workers of node:cluster and their primary count together', { timeout: 30_000 }, async () => {
  const { child, output } = runFixture('ipc-cluster.ts')
  await once(child, 'close')
  expect(output).toEqual(['total 1', 'total 2', 'total 3'])
})

test('stores in one process are apart unless they share a parent', async () => {
  const [a, b] = [memoryStore().open(node('a')), memoryStore().open(node('b'))]
  await a.sync(beat)
  expect((await b.sync(beat)).heartbeat?.nodes).toBe(1)
})
