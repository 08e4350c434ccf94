import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'

const SOURCES = fileURLToPath(new URL('..', import.meta.url))
/** Inside the package, so that the programs find its dependencies. */
const PLACE = fileURLToPath(new URL('../../dist', import.meta.url))
/** A folder of this process alone, because tests and benches may run side by side. */
export const PROGRAMS = `${PLACE}/${process.pid}`

/** Programs that run in processes of their own. Each prints one line of JSON. */
const NAMES = [
  'decision',
  'local',
  'memory',
  'http/server',
  'sync',
  'redis',
  'scale',
  'central',
  'etcd',
  'away',
  'snapshot',
  'plan',
  'rules',
  'update',
  'flood',
  'import',
  'windows',
  'worst',
  'waiting/cost',
  'waiting/keys',
  'waiting/slow',
  'waiting/pace',
  'stores/cost',
  'stores/node',
] as const
/** Long programs that read the sources: they are compiled together with them, which is faster than a loader that compiles each module. */
const WITH_SOURCES = ['soak'] as const
export type ProgramName = (typeof NAMES)[number] | (typeof WITH_SOURCES)[number]

let built: Promise<unknown> | undefined

/** Compiles the programs; what they import stays outside, so that they measure the packages as they are built and shipped. */
function buildPrograms(): Promise<unknown> {
  mkdirSync(PROGRAMS, { recursive: true })
  for (const other of readdirSync(PLACE)) if (!isRunning(Number(other))) rmSync(`${PLACE}/${other}`, { recursive: true, force: true })
  return Promise.all([compile(NAMES, { packages: 'external' }), compile(WITH_SOURCES, { conditions: ['@weir/source'] })])
}

function compile(names: readonly ProgramName[], options: BuildOptions): Promise<unknown> {
  return build({
    entryPoints: names.map((name) => ({ in: `${SOURCES}/${name.includes('/') ? name : `${name}/program`}.ts`, out: name })),
    outdir: PROGRAMS,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    splitting: true,
    logLevel: 'error',
    ...options,
  })
}

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch {
    return false
  }
}

export interface ProgramOptions {
  readonly execArgv?: readonly string[]
  /** A program that runs Node.js, and its arguments, e.g. one that counts instructions. Its messages are not shown. */
  readonly under?: readonly string[]
  /** Milliseconds after which it is ended. */
  readonly patience?: number
  /** Whether it has a channel to this process, as children of `fork` have. */
  readonly channel?: boolean
}

/** Options of Node.js with which a program measures the sources instead of what was built, for tests. */
export const FROM_SOURCE: readonly string[] = ['--conditions=@weir/source', '--import', 'tsx']

/** Starts a program with an input. Ends with this process at the latest. */
export async function startProgram(name: ProgramName, input: unknown, options: ProgramOptions = {}): Promise<ChildProcess> {
  await (built ??= buildPrograms())
  const args = ['--no-warnings', ...(options.execArgv ?? []), `${PROGRAMS}/${name}.mjs`, JSON.stringify(input)]
  const env = { ...process.env, NODE_ENV: 'production' }
  const [command, ...rest] = [...(options.under ?? []), process.execPath, ...args] as [string, ...string[]]
  const errors = options.under === undefined ? 'inherit' : 'pipe'
  const child = spawn(command, rest, { stdio: ['pipe', 'pipe', errors, ...(options.channel ? ['ipc' as const] : [])], env })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** None outlives this process. One listener for all: some benches run dozens at once. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Runs a program to its end, in a fresh process. Gives the last line that it printed, parsed. */
export async function runProgram<Result>(name: ProgramName, input: unknown, options: ProgramOptions = {}): Promise<Result> {
  const text = await printed(name, input, options)
  return JSON.parse(text.trimEnd().split('\n').at(-1) as string) as Result
}

/** As `runProgram`, but gives all that it printed. */
export async function printed(name: ProgramName, input: unknown, options: ProgramOptions = {}): Promise<string> {
  const child = await startProgram(name, input, options)
  const { patience = 600_000 } = options
  let how: string | undefined
  const timer = setTimeout(() => {
    how = `took more than ${patience / 1_000} s`
    child.kill('SIGKILL')
  }, patience)
  let text = ''
  child.stdout?.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  const [status, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(timer)
  if (status !== 0)
    throw new Error(`The program ${name} ${how ?? `ended with ${status ?? signal}`} for ${JSON.stringify(input)}\n${text.slice(-2000)}`)
  return text
}

/**
 * Runs contenders in turn, each time in a fresh process, for some rounds, so that a slow minute of the machine hits all of
 * them alike.
 */
export async function inTurn<Contender, Result>(
  contenders: readonly Contender[],
  rounds: number,
  run: (contender: Contender, round: number) => Promise<Result>,
): Promise<Map<Contender, Result[]>> {
  const results = new Map<Contender, Result[]>(contenders.map((contender) => [contender, []]))
  for (let round = 0; round < rounds; round++) {
    for (const contender of contenders) results.get(contender)?.push(await run(contender, round))
  }
  return results
}
