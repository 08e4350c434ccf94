import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createThrottler, memoryStore, type Store, type Throttler } from '@weir/core'
import { ipcStore, serveIpc } from '@weir/core/ipc'
import { fileRules, follow, httpRules, type RulesSource } from '@weir/core/rules'
import { loadCode } from '@weir/core/sync'
import {
  expectSimulation,
  faultProxy,
  manualClock,
  poisson,
  shorten,
  simulate,
  simulatedStore,
  trySpellings,
  VirtualTime,
} from '@weir/testing'
import { AWAITED, awaitOne, type Case } from '@weir/testing/store-tests/awaited'
import { HUNG } from './hung-store.ts'

const SCENARIO = { policy: { limit: 10, interval: '1s' }, nodes: 2, intervals: 2, load: poisson(1.5), seed: 1 } as const

/** Runs a function with a temporary folder, and removes the folder afterwards. */
async function inFolder<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-awaits-'))
  try {
    return await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param timeout long for a file, which may take seconds on a busy machine, and short for a server that never answers */
function followed(source: RulesSource, timeout: number, lastGood?: string) {
  const throttler = createThrottler({ policies: [{ limit: 1, interval: '1h', coordination: 'local' }] })
  throttler.on('warning', () => {})
  return follow(throttler as unknown as Throttler, source, { timeout, ...(lastGood !== undefined && { lastGood }) })
}

const document = (limit: number): string =>
  JSON.stringify({ version: 1, policies: [{ name: 'all', key: 'all', limit, interval: '1h', coordination: 'local' }] })

/** Calls that need no server, or whose server doesn't keep the process alive. */
const ALONE: readonly [string, Case][] = [
  ['loadCode', async () => (await loadCode(() => import('node:path'))).posix.sep],
  [
    'file rules: read and replace',
    () =>
      inFolder(async (folder) => {
        const source = fileRules(join(folder, 'rules.json'))
        await source.replace?.(undefined, document(5))
        return (await source.read(new AbortController().signal)) === document(5)
      }),
  ],
  [
    'file rules: ready and close',
    () =>
      inFolder(async (folder) => {
        writeFileSync(join(folder, 'rules.json'), document(5))
        const rules = followed(fileRules(join(folder, 'rules.json')), 8_000, join(folder, 'last-good.json'))
        await rules.ready
        await rules.close()
        return rules.status.version
      }),
  ],
  [
    'http rules that never come: ready and close',
    async () => {
      const server = createServer(() => {}).unref()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const rules = followed(httpRules(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`), 300)
      await rules.ready
      await rules.close()
      return rules.status.away === undefined ? 'read' : 'away'
    },
  ],
  [
    'http rules: read',
    async () => {
      const server = createServer((_request, response) => response.end(document(5))).unref()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const source = httpRules(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
      return (await source.read(new AbortController().signal)) === document(5)
    },
  ],
  [
    'faultProxy',
    async () => {
      const proxy = await faultProxy({ port: 9 })
      await proxy.close()
      return proxy.port > 0
    },
  ],
  [
    'trySpellings',
    async () => {
      const server = createServer((_request, response) => response.writeHead(404).end()).unref()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      return (await trySpellings({ port, routes: [{ match: '/a', path: '/a' }] as never, count: 20 })).reached
    },
  ],
  ['simulate', async () => (await simulate(SCENARIO)).intervals],
  ['expectSimulation', async () => (await expectSimulation(SCENARIO, () => {})).intervals],
  [
    'shorten',
    async () => {
      const fails = () => {
        throw new Error('always')
      }
      return (await shorten(SCENARIO, fails)).intervals
    },
  ],
  [
    'virtual time',
    async () => {
      const time = new VirtualTime()
      await time.settled()
      await time.drained()
      await time.runUntil(1_000)
      return time.now
    },
  ],
  [
    'a clock of its own and a simulated store',
    async () => {
      const clock = manualClock()
      const store = simulatedStore({ time: clock.time })
      const policy = { limit: 10, interval: '1s', coordination: 'central' } as const
      const throttler = createThrottler({ policies: [policy], store, clock }).start()
      await clock.advance(1_500)
      const checked = throttler.checkAsync('a')
      await store.opened()
      await clock.advance(1_500)
      const { allowed } = await checked
      const closed = throttler.close()
      await clock.advance(1_500)
      await closed
      return allowed
    },
  ],
]

/** Cases of a store in this process. */
function within(name: string, store: () => Store): readonly [string, Case][] {
  return [...AWAITED]
    .filter(([one]) => !/rules/.test(one))
    .map(([one, run]) => [`${name}: ${one}`, (_place, ready) => run({ store: store() }, ready)])
}

const cases = new Map([
  ...ALONE,
  ...within('in memory', memoryStore),
  ...within('in the parent', () => {
    serveIpc()
    return ipcStore({ timeout: 8_000 })
  }),
])
await awaitOne(() => ({ store: HUNG }), cases)
