import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis, type RedisOptions } from 'ioredis'
import { guard } from './guard.ts'
import { findRedisServer } from './redis-server.js'

/** The longest time in milliseconds until a server, a failover or a Cluster answers as expected. */
const PATIENCE = 20_000
/** The longest time in milliseconds for a command. */
const COMMAND_TIMEOUT = 5_000

// Servers must not outlive the tests, even if a test run crashes.
const running = new Set<ChildProcess>()
const directories = new Set<string>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

/** Options of a connection that sends only the given commands, and fails instead of retrying. */
const ONCE = {
  host: '127.0.0.1',
  lazyConnect: true,
  connectTimeout: COMMAND_TIMEOUT,
  commandTimeout: COMMAND_TIMEOUT,
  enableReadyCheck: false,
  protocol: 2,
  disableClientInfo: true,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
} as const satisfies RedisOptions

/** Waits until `condition` is true, for at most `patience` milliseconds. */
export async function until(condition: () => Promise<boolean> | boolean, what: string, patience: number = PATIENCE): Promise<void> {
  const deadline = Date.now() + patience
  for (;;) {
    const holds = await Promise.resolve(condition()).catch(() => false)
    if (holds) return
    if (Date.now() > deadline) throw new Error(`Waited ${patience} ms in vain until ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

// The ports are below those of outgoing connections (from 32,768 on most systems), because an outgoing connection may take a port before a
// server listens, or while it restarts. They are above 10,080, the highest port that `fetch` refuses ("bad port"). The bus of a Cluster
// listens 10,000 above a server's port.
const FIRST_PORT = 10_100
const PORTS = 10_000
const BUS = 10_000
const given = new Set<number>()

/** A port of the loopback interface that is free together with the port of its bus, and that this process did not get before. */
export async function freePort(): Promise<number> {
  for (;;) {
    // Random, so that suites that run in parallel don't try the same ports.
    const port = FIRST_PORT + randomInt(PORTS)
    if (given.has(port)) continue
    given.add(port)
    if (given.size === PORTS) given.clear()
    if ((await isFree(port)) && (await isFree(port + BUS))) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const free = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (!free) return false
  server.close()
  await once(server, 'close')
  return true
}

export interface RedisServerOptions {
  /** Further arguments of redis-server, e.g. `['--maxmemory', '5mb']`. */
  readonly arguments?: readonly string[]
  /** The port without TLS. Default: a free port. */
  readonly port?: number
  readonly sentinel?: boolean
  /** The content of a configuration file. Arguments override it. */
  readonly config?: string
  /** The options with which an administrator connects, e.g. `{ password: 'x' }`. */
  readonly admin?: Pick<RedisOptions, 'username' | 'password' | 'tls'>
  /** Further environment variables, e.g. for a shifted clock. */
  readonly env?: Readonly<Record<string, string>>
}

/** One redis-server on the loopback interface, with its own directory. It ends with this process at the latest. */
export class RedisServer {
  readonly port: number
  readonly directory: string
  readonly #options: RedisServerOptions
  #child: ChildProcess | undefined

  private constructor(port: number, options: RedisServerOptions) {
    this.port = port
    this.#options = options
    this.directory = mkdtempSync(join(tmpdir(), 'weir-redis-'))
    directories.add(this.directory)
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const server = new RedisServer(options.port ?? (await freePort()), options)
    await server.start()
    return server
  }

  /** The process id while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Whether its process runs. */
  get running(): boolean {
    const child = this.#child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /**
   * Starts the server, or starts it again on the same port and in the same directory.
   *
   * @param once - further arguments, for this start only
   */
  async start(once: readonly string[] = []): Promise<void> {
    const { sentinel = false, config, arguments: more = [], env } = this.#options
    const arguments_ = ['--bind', '127.0.0.1', '--dir', this.directory, '--port', String(this.port), '--logfile', 'redis.log']
    if (config !== undefined) {
      // Sentinels write their state into this file, so a restart must not overwrite it.
      const file = join(this.directory, 'server.conf')
      if (!existsSync(file)) writeFileSync(file, config)
      arguments_.unshift(file)
    }
    // Later options override earlier ones.
    if (sentinel) arguments_.push('--sentinel')
    else arguments_.push('--save', '', '--appendonly', 'no', ...more, ...once)
    const child = spawn(findRedisServer() ?? 'redis-server', arguments_, { stdio: 'ignore', env: { ...process.env, ...env } })
    this.#child = child
    running.add(child)
    guard(child, this.directory)
    let failure: Error | undefined
    child.once('error', (error) => {
      failure = error
    })
    child.once('exit', () => running.delete(child))
    await until(async () => {
      if (failure !== undefined || child.exitCode !== null) return true
      return /PONG|LOADING|NOAUTH/.test(await this.command('ping'))
    }, `redis-server answers on port ${this.port}`)
    if (failure !== undefined) throw new Error('redis-server can not be started; is it installed?', { cause: failure })
    if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}; see ${join(this.directory, 'redis.log')}.`)
  }

  /**
   * Sends a command as the administrator, on a new connection, because the server may have closed all others.
   *
   * @returns the reply as text, an item per line. For an error of the server, its message
   * @throws if the server can't be reached
   */
  command(...command: readonly string[]): Promise<string> {
    return this.#connected(async (client) => {
      const [name = '', ...rest] = command
      try {
        return textOf(await client.call(name, ...rest)).trim()
      } catch (error) {
        if (error instanceof Error && error.name === 'ReplyError') return error.message
        throw error
      }
    })
  }

  /** The keys of a database that match a pattern, in no order. */
  keys(pattern: string, db = 0): Promise<string[]> {
    return this.#connected((client) => client.keys(pattern), db)
  }

  async #connected<T>(use: (client: Redis) => Promise<T>, db = 0): Promise<T> {
    const client = new Redis({ ...ONCE, ...this.#options.admin, port: this.port, db })
    client.on('error', () => {})
    try {
      await client.connect()
      return await use(client)
    } finally {
      client.disconnect()
    }
  }

  /** Ends the process at once (kill −9). Its data is lost unless the server was configured to save it. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** Kills the server (kill −9), and starts an empty one on the same port. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** Stops the process: connections stay open, but the server answers nothing. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Ends the server and removes its directory. */
  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.directory, { recursive: true, force: true })
    directories.delete(this.directory)
  }
}

function textOf(reply: unknown): string {
  return Array.isArray(reply) ? reply.map(textOf).join('\n') : String(reply ?? '')
}
