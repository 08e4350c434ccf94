import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { guard } from './guard.ts'
import { findPgbouncer, findPostgres } from './postgres-server.js'
import { freePort, until } from './redis-servers.ts'

export { findPgbouncer, findPostgres, howToInstallPostgres } from './postgres-server.js'

const execute = promisify(execFile)

// Servers must not outlive the tests, even if a test run crashes.
const running = new Set<PostgresServer>()
const directories = new Set<string>()
process.on('exit', () => {
  for (const server of running) server.killNow()
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

interface User {
  readonly uid: number
  readonly gid: number
}

/** The user for servers if this process is root, because PostgreSQL does not run as root: `postgres` or, without it, `nobody`. */
function serverUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const line = users.find((one) => one.startsWith(`${name}:`))
    if (line !== undefined) return { uid: Number(line.split(':')[2]), gid: Number(line.split(':')[3]) }
  }
  throw new Error('PostgreSQL does not run as root, and this system has neither a user postgres nor nobody.')
}

/** A folder that the server may write to. */
function folderFor(user: User | undefined, prefix: string): string {
  const directory = mkdtempSync(join(tmpdir(), prefix))
  directories.add(directory)
  chmodSync(directory, 0o700)
  if (user !== undefined) chownSync(directory, user.uid, user.gid)
  return directory
}

/** The number of further attempts to start a server after it was killed. */
const RESTARTS = 50

/** Settings for speed. The data need not survive a crash of the machine. */
const SETTINGS = [
  'fsync=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'max_connections=100',
  'max_wal_size=256MB',
  'autovacuum_naptime=10s',
  'timezone=UTC',
  'log_min_messages=warning',
]

export interface PostgresServerOptions {
  /** The port of the server. Default: a free port. */
  readonly port?: number
  /** Further settings, e.g. `['hot_standby=on']`. */
  readonly settings?: readonly string[]
  /** Makes the folder with the data. Default: `initdb`. */
  readonly data?: (directory: string, user: { readonly uid?: number; readonly gid?: number }) => Promise<void>
}

/**
 * One PostgreSQL server on the loopback interface, with its own folder. It ends with this process at the latest. Every local user may log
 * in as `postgres`.
 */
export class PostgresServer {
  readonly port: number
  readonly directory: string
  readonly #options: PostgresServerOptions
  readonly #user: User | undefined
  #child: ChildProcess | undefined

  private constructor(port: number, options: PostgresServerOptions) {
    this.port = port
    this.#options = options
    this.#user = serverUser()
    this.directory = folderFor(this.#user, 'weir-postgres-')
  }

  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(options.port ?? (await freePort()), options)
    if (options.data !== undefined) await options.data(server.directory, { ...server.#user })
    else {
      const args = ['-D', server.directory, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
      await execute(join(findPostgres() ?? '', 'initdb'), args, { cwd: '/', ...server.#user })
    }
    await server.start()
    return server
  }

  get url(): string {
    return this.urlOf('postgres')
  }

  urlOf(database: string, user: string = 'postgres'): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`
  }

  /** The process id while it runs. Its other processes are children of this one. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts the server, or starts it again on the same port with the same data. */
  async start(attempts = 50): Promise<void> {
    const settings = [...SETTINGS, ...(this.#options.settings ?? []), `unix_socket_directories=${this.directory}`]
    const args = ['-D', this.directory, '-h', '127.0.0.1', '-p', String(this.port), ...settings.flatMap((one) => ['-c', one])]
    const child = spawn(join(findPostgres() ?? '', 'postgres'), args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'], ...this.#user })
    this.#child = child
    let said = ''
    const { stderr } = child as typeof child & { readonly stderr: Socket }
    stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-500)))
    // The stream must not keep this process alive.
    stderr.unref()
    running.add(this)
    guard(child, this.directory)
    let failure: Error | undefined
    child.once('error', (error) => {
      failure = error
    })
    await until(
      async () => {
        if (failure !== undefined || child.exitCode !== null) return true
        await this.sql('SELECT 1')
        return true
      },
      `PostgreSQL answers on port ${this.port}`,
      60_000,
    )
    if (failure !== undefined) throw new Error('PostgreSQL can not be started; is it installed?', { cause: failure })
    if (child.exitCode === null) return
    // Other processes of a killed server end a moment later.
    if (!/pre-existing shared memory block/.test(said) || attempts <= 1) {
      throw new Error(`postgres ended with ${child.exitCode}: ${said.trim()}`)
    }
    await setTimeout(200)
    await this.start(attempts - 1)
  }

  /** Runs statements with psql and returns their output, unaligned. */
  async sql(text: string, database: string = 'postgres'): Promise<string> {
    const args = ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', this.urlOf(database), '-c', text]
    const { stdout } = await execute(join(findPostgres() ?? '', 'psql'), args, { timeout: 10_000, cwd: '/' })
    return stdout.trim()
  }

  /** All process ids of the server, its parent process first. */
  #processes(): number[] {
    const parent = this.#child?.pid
    if (parent === undefined) return []
    return [parent, ...childrenOf(parent)]
  }

  /** Ends all processes at once (kill −9). Changes that are not in the log are lost. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    this.killNow()
    await exited
    running.delete(this)
  }

  killNow(): void {
    this.#signal('SIGKILL')
  }

  /** Kills the server (kill −9), and starts it again. */
  async restart(): Promise<void> {
    await this.kill()
    for (let left = RESTARTS; ; left--) {
      try {
        await this.start()
        return
      } catch (error) {
        // On a busy machine a killed process may still use the shared memory, and a new server does not start until it is free.
        if (left === 0 || this.#child?.exitCode !== 1) throw error
        running.delete(this)
        await setTimeout(200)
      }
    }
  }

  /** Stops all processes: connections stay open, but the server answers nothing. */
  pause(): void {
    this.#signal('SIGSTOP')
  }

  resume(): void {
    this.#signal('SIGCONT')
  }

  /** Copies the data. The server must not run. */
  async copyTo(directory: string): Promise<void> {
    await execute('cp', ['-a', `${this.directory}/.`, directory])
    rmSync(join(directory, 'postmaster.pid'), { force: true })
  }

  /** Promotes a standby to the primary. */
  async promote(): Promise<void> {
    await this.sql('SELECT pg_promote(true, 30)')
  }

  /** Ends the server and removes its folder. */
  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.directory, { recursive: true, force: true })
    directories.delete(this.directory)
  }

  #signal(signal: NodeJS.Signals): void {
    for (const pid of this.#processes()) {
      try {
        process.kill(pid, signal)
      } catch {
        // The process has ended in the meantime.
      }
    }
  }
}

function childrenOf(parent: number): number[] {
  const all = existsSync('/proc') ? readdirSync('/proc').filter((pid) => parentOf(Number(pid)) === parent) : pgrep(parent)
  return all.map(Number).filter((pid) => pid > 0)
}

function pgrep(parent: number): string[] {
  return spawnSync('pgrep', ['-P', String(parent)], { encoding: 'utf8' }).stdout.split('\n')
}

function parentOf(pid: number): number {
  try {
    // The name, in brackets, may contain any character.
    return Number(
      readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[1],
    )
  } catch {
    return 0
  }
}

/** Makes the data of a standby from a running primary. */
export function standbyOf(primary: PostgresServer): NonNullable<PostgresServerOptions['data']> {
  return async (directory, user) => {
    const source = `host=127.0.0.1 port=${primary.port} user=postgres`
    await execute(
      join(findPostgres() ?? '', 'pg_basebackup'),
      ['-D', directory, '-d', source, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'],
      {
        cwd: '/',
        ...user,
      },
    )
  }
}

/** A pgbouncer in front of a server. */
export class Pgbouncer {
  readonly port: number
  readonly #child: ChildProcess
  readonly #directory: string

  private constructor(port: number, child: ChildProcess, directory: string) {
    this.port = port
    this.#child = child
    this.#directory = directory
  }

  /** @param mode when another client may get a connection to the server: after a `transaction` or a `session` */
  static async start(server: PostgresServer, mode: 'transaction' | 'session'): Promise<Pgbouncer> {
    const user = serverUser()
    const directory = folderFor(user, 'weir-pgbouncer-')
    const port = await freePort()
    const file = join(directory, 'pgbouncer.ini')
    writeFileSync(
      file,
      `[databases]
* = host=127.0.0.1 port=${server.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
auth_type = any
pool_mode = ${mode}
default_pool_size = 4
unix_socket_dir =
logfile = ${join(directory, 'log')}
`,
    )
    if (user !== undefined) chownSync(file, user.uid, user.gid)
    const child = spawn(findPgbouncer() ?? 'pgbouncer', ['-q', file], { cwd: directory, stdio: 'ignore', ...user })
    guard(child, directory)
    const bouncer = new Pgbouncer(port, child, directory)
    const psql = join(findPostgres() ?? '', 'psql')
    await until(
      () => spawnSync(psql, ['-X', '-d', bouncer.url, '-c', 'SELECT 1'], { cwd: '/', timeout: 5_000 }).status === 0,
      `pgbouncer answers on port ${port}`,
    )
    return bouncer
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = once(this.#child, 'exit')
      this.#child.kill('SIGKILL')
      await exited
    }
    rmSync(this.#directory, { recursive: true, force: true })
    directories.delete(this.#directory)
  }
}
