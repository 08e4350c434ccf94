import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'

export interface ProgramOptions {
  readonly execArgv?: readonly string[]
  /** A program that runs Node.js, and its arguments, e.g. one that counts instructions. Its messages are not shown. */
  readonly under?: readonly string[]
  /** Milliseconds after which it is ended. */
  readonly patience?: number
  /** Whether it has a channel to this process, as children of `fork` have. */
  readonly channel?: boolean
}

/** Names of programs: `decision` is `src/decision/program.ts`, `http/server` is `src/http/server.ts`. */
export interface ProgramNames<Name extends string> {
  /** Programs that measure the packages as they are built and shipped: what they import stays outside. */
  readonly asBuilt?: readonly Name[]
  /** Long programs that read the sources: they are compiled together with them, which is faster than a loader that compiles each module. */
  readonly withSources?: readonly Name[]
}

/** Programs that run in processes of their own. Each prints one line of JSON. They are compiled when the first one starts. */
export class CompiledPrograms<Name extends string> {
  /** A folder of this process alone, because tests and benches may run side by side. */
  readonly directory: string
  readonly #sources: string
  /** Inside the package, so that the programs find its dependencies. */
  readonly #place: string
  readonly #names: ProgramNames<Name>
  #built: Promise<unknown> | undefined

  /** @param home the folder of the package */
  constructor(home: URL, names: ProgramNames<Name>) {
    this.#sources = fileURLToPath(new URL('src', home))
    this.#place = fileURLToPath(new URL('dist', home))
    this.directory = `${this.#place}/${process.pid}`
    this.#names = names
  }

  /** Starts a program with an input. Ends with this process at the latest. */
  async start(name: Name, input: unknown, options: ProgramOptions = {}): Promise<ChildProcess> {
    await (this.#built ??= this.#build())
    const args = ['--no-warnings', ...(options.execArgv ?? []), `${this.directory}/${name}.mjs`, JSON.stringify(input)]
    const env = { ...process.env, NODE_ENV: 'production' }
    const [command, ...rest] = [...(options.under ?? []), process.execPath, ...args] as [string, ...string[]]
    const errors = options.under === undefined ? 'inherit' : 'pipe'
    const child = spawn(command, rest, { stdio: ['pipe', 'pipe', errors, ...(options.channel ? ['ipc' as const] : [])], env })
    running.add(child)
    child.once('exit', () => running.delete(child))
    return child
  }

  /** Runs a program to its end, in a fresh process. Gives the last line that it printed, parsed. */
  async run<Result>(name: Name, input: unknown, options: ProgramOptions = {}): Promise<Result> {
    const text = await this.printed(name, input, options)
    return JSON.parse(text.trimEnd().split('\n').at(-1) as string) as Result
  }

  /** As `run`, but gives all that it printed. */
  async printed(name: Name, input: unknown, options: ProgramOptions = {}): Promise<string> {
    const child = await this.start(name, input, options)
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

  #build(): Promise<unknown> {
    mkdirSync(this.directory, { recursive: true })
    for (const other of readdirSync(this.#place))
      if (!isRunning(Number(other))) rmSync(`${this.#place}/${other}`, { recursive: true, force: true })
    const { asBuilt = [], withSources = [] } = this.#names
    return Promise.all([this.#compile(asBuilt, { packages: 'external' }), this.#compile(withSources, { conditions: ['@weir/source'] })])
  }

  async #compile(names: readonly Name[], options: BuildOptions): Promise<void> {
    if (names.length === 0) return
    await build({
      entryPoints: names.map((name) => ({ in: `${this.#sources}/${name.includes('/') ? name : `${name}/program`}.ts`, out: name })),
      outdir: this.directory,
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
}

/** None outlives this process. One listener for all: some benches run dozens at once. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch {
    return false
  }
}
