import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'

export interface ProgramOptions {
  readonly execArgv?: readonly string[]
  /** A program that runs Node.js, with its arguments, for example to count instructions. Its messages are not shown. */
  readonly under?: readonly string[]
  /** Milliseconds after which the program is ended. */
  readonly patience?: number
  /** Whether it has a channel to this process, like children of `fork`. */
  readonly channel?: boolean
}

/** Names of programs: `decision` is `src/decision/program.ts`, `http/server` is `src/http/server.ts`. */
export interface ProgramNames<Name extends string> {
  /** Programs that measure the packages as they are built and shipped. Their imports are not bundled. */
  readonly asBuilt?: readonly Name[]
  /** Long programs that read the sources. They are bundled with them, which is faster than a loader that compiles each module. */
  readonly withSources?: readonly Name[]
}

/** Programs that run in separate processes. Each prints one line of JSON. They are compiled when the first one starts. */
export class CompiledPrograms<Name extends string> {
  /** A folder for this process alone, because tests and benches may run at the same time. */
  readonly directory: string
  readonly #sources: string
  /** A folder inside the package, so that the programs find its dependencies. */
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

  /** Starts a program with an input. It ends at the latest with this process. */
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

  /** Runs a program to its end, in a new process. Returns the last line of its output, parsed. */
  async run<Result>(name: Name, input: unknown, options: ProgramOptions = {}): Promise<Result> {
    const text = await this.printed(name, input, options)
    return JSON.parse(text.trimEnd().split('\n').at(-1) as string) as Result
  }

  /** Runs a program like `run`, but returns its whole output. */
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

/** Programs that are running. All of them end with this process. They share one listener, because some benches run dozens at once. */
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
