import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundlePrograms } from '@weir/tooling/bundle'
import { freePort, until } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AWAITED } from './awaited.ts'

/** A real server of the store. */
export interface ServerUnderTest {
  readonly url: string
  /** Makes the server hang: connections stay open, and it answers nothing. */
  pause(): unknown
  stop(): Promise<void>
}

export interface SettlingStore {
  /** The folder of the package. */
  readonly directory: string
  /** A program in that folder that calls `awaitOne`. */
  readonly program: string
  /** Packages that are not bundled into the program. */
  readonly external: readonly string[]
  start(): Promise<ServerUnderTest>
  /** The store's address at a port. */
  urlAt(port: number): string
  /** Leaves out cases in which the store has no part. */
  readonly only?: (name: string) => boolean
  /** Starts the program, with its output as pipes. Default: a process that shares nothing else with this one. */
  readonly run?: (args: readonly string[], state: State) => ChildProcess
}

export type State = 'up' | 'down' | 'hung'

/** The outcome of each promise. For a failure it is the code or the reason. */
const OUTCOMES: readonly (readonly [name: RegExp, up: string | number, away: string | RegExp | number])[] = [
  [/^(checkAsync|acquire|tryAcquire|reserveAsync), (background|waiting)|^a (look with a )?function/, 'allowed', 'allowed'],
  [/^(checkAsync|reserveAsync|decideAsync|waitFor|tryAcquire|guard),/, 'allowed', 'rejected'],
  [/^acquire,/, 'allowed', 'timeout'],
  [/^(schedule|wrap|limitedFetch),/, 'ran', 'timeout'],
  [/^usage,/, 'store', 'node'],
  [/^flush,/, 'true', 'false'],
  [/^a rejection/, 429, 429],
  [/^a pause/, 'over', 'over'],
  [/^a handler/, 'failed', 'failed'],
  [/^followed rules: versions/, 0, 0],
  [/^rules: read/, 'nothing', /^WEIR_STORE_/],
  [/^rules: history/, 0, /^WEIR_STORE_/],
  [/^rules: replace/, 'false', /^WEIR_STORE_/],
  [/^followed rules: ready/, 'away', 'away'],
  [/^an exchange|^the audit log/, 'answered', /^WEIR_STORE_/],
  [/^auditLog,/, 'read', /^WEIR_STORE_/],
  [/^recordAction,/, 'done', 'done'],
  [/./, 'closed', 'closed'],
]

/**
 * Milliseconds that calls wait for the store. A running store may be slow on a busy machine, but the test should not wait for one
 * that is down.
 */
export const PATIENCE: Readonly<Record<State, number>> = { up: 8_000, down: 500, hung: 500 }
/** Milliseconds in which each promise must settle. Each waits for the store once or twice, and a busy machine is slow. */
const BOUND = 10_000
/** Milliseconds after which a process that has not ended is ended. */
const LONGEST = 12 * BOUND
/** The number of processes at a time. */
const AT_ONCE = Math.max(2, availableParallelism())

/** Checks that each promise settles in a process that does nothing else, and that the process ends then. */
export function promisesSettle({ directory, program, external, start, urlAt, only = () => true, run = alone }: SettlingStore): void {
  const names = [...AWAITED.keys()].filter(only)
  const hanging = new Set<Socket>()
  let folder: string
  let signals: string
  let up: ServerUnderTest
  let hung: Server
  let down: number
  let file: string

  beforeAll(async () => {
    folder = await bundlePrograms(directory, [program], external)
    file = join(folder, program.replace(/^.*\/|\.ts$/g, '').concat('.mjs'))
    signals = mkdtempSync(join(tmpdir(), 'weir-awaits-'))
    up = await start()
    down = await freePort()
    hung = createServer((socket) => {
      hanging.add(socket)
      socket.on('error', () => {})
    })
    hung.listen(0, '127.0.0.1')
    await once(hung, 'listening')
  })

  afterAll(async () => {
    for (const socket of hanging) socket.destroy()
    hung.close()
    await up.stop()
    for (const one of [folder, signals]) rmSync(one, { recursive: true, force: true })
  })

  const addressIn = (state: State): string =>
    state === 'up' ? up.url : urlAt(state === 'down' ? down : (hung.address() as AddressInfo).port)

  /** Runs the cases, some at a time. */
  async function each(go: (name: string) => Promise<void>): Promise<void> {
    const left = [...names]
    const next = async (): Promise<void> => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) await go(name)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next))
  }

  describe.each<State>(['up', 'down', 'hung'])('a promise that is awaited alone settles while the store is %s', (state) => {
    it('as documented, and the process ends then', { timeout: 3 * LONGEST }, async () => {
      const problems: unknown[] = []
      await each(async (name) => {
        const found = await endOf(run([file, name, addressIn(state), String(PATIENCE[state])], state))
        problems.push(...problemsOf(name, state, found))
      })
      expect(problems).toEqual([])
    })
  })

  it('a promise that is awaited alone settles after a store that answered hangs', { timeout: 3 * LONGEST }, async () => {
    const goOn = join(signals, 'go-on')
    const asked = names.filter((name) => /^(checkAsync|acquire|reserveAsync|usage|close|a pause), (?!waiting)/.test(name))
    const children = asked.map((name) => {
      const child = run([file, name, up.url, String(PATIENCE.hung), goOn], 'up')
      const one = { name, ready: false, end: endOf(child) }
      child.stdout?.once('data', () => {
        one.ready = true
      })
      return one
    })
    await until(() => children.every(({ ready }) => ready), 'the store has answered each of them', 60_000)
    await up.pause()
    writeFileSync(goOn, '')
    const found = await Promise.all(children.map(async ({ name, end }) => problemsOf(name, 'hung', await end)))
    expect(found.flat()).toEqual([])
  })
}

/** The cases in which each store has its own part. The others were tried with one store. */
export const OF_STORES = (name: string): boolean =>
  /^(checkAsync, (central|leases)|usage, (background|central)|close, background|a pause|rules|followed|an exchange|what asks)/.test(name)

/** If a process does not end, a signal makes it write a diagnostic report. */
const REPORTS = ['--report-on-signal', '--report-compact', '--report-exclude-network', '--report-filename=stderr']

/** Runs a program in a process that shares nothing with this one but two pipes. */
export function alone(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [...REPORTS, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
}

interface End {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export async function endOf(child: ChildProcess): Promise<End> {
  const said = { out: '', err: '' }
  child.stdout?.on('data', (piece) => {
    said.out += String(piece)
  })
  child.stderr?.on('data', (piece) => {
    said.err += String(piece)
  })
  // This is far longer than the asserted bound, which counts from the start of the program. A busy machine may need a minute to
  // start it.
  const timers = [setTimeout(() => child.kill('SIGUSR2'), LONGEST), setTimeout(() => child.kill('SIGKILL'), LONGEST + BOUND)]
  const [code] = (await once(child, 'close')) as [number | null]
  for (const timer of timers) clearTimeout(timer)
  return { code, out: said.out, err: withoutTheRest(said.err) }
}

/** Reduces a diagnostic report to the parts that explain why the process does not end. */
function withoutTheRest(err: string): string {
  const at = err.indexOf('{"header"')
  if (at < 0) return err
  try {
    const { javascriptStack, nativeStack, libuv, resourceUsage } = JSON.parse(err.slice(at, err.lastIndexOf('}') + 1))
    return `${err.slice(0, at)}${JSON.stringify({ javascriptStack, nativeStack, libuv, cpu: resourceUsage.userCpuSeconds })}`
  } catch {
    return err
  }
}

/** Lists the faults in the end of a process that awaited a promise, for a state of the store. Empty if there are none. */
export function problemsOf(name: string, state: State, { code, out, err }: End): unknown[] {
  const [, whenUp, whenAway] = OUTCOMES.find(([names]) => names.test(name)) as (typeof OUTCOMES)[number]
  const expected = state === 'up' ? whenUp : whenAway
  try {
    const { outcome, took } = JSON.parse(out.replace('ready\n', '')) as { readonly outcome: unknown; readonly took: number }
    const isExpected = expected instanceof RegExp ? expected.test(String(outcome)) : String(outcome) === String(expected)
    if (code === 0 && isExpected && took < BOUND) return []
    return [{ name, state, code, outcome, expected: String(expected), took }]
  } catch {
    return [{ name, state, code, out, err }]
  }
}
