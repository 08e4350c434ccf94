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

/** How long a server, a failover or a Cluster may take until it answers as expected, milliseconds. */
const PATIENCE = 20_000
/** How long a server may take for a command, milliseconds. */
const COMMAND_TIMEOUT = 5_000

// Servers must not outlive the tests, however those end.
const running = new Set<ChildProcess>()
const directories = new Set<string>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

/** A connection that sends nothing but what it is given, and fails instead of trying again. */
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

/** Waits until `condition` holds, for at most `patience` milliseconds. */
export async function until(condition: () => Promise<boolean> | boolean, what: string, patience: number = PATIENCE): Promise<void> {
  const deadline = Date.now() + patience
  for (;;) {
    const holds = await Promise.resolve(condition()).catch(() => false)
    if (holds) return
    if (Date.now() > deadline) throw new Error(`Waited ${patience} ms in vain until ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

// Below the ports of outgoing connections (from 32,768 on, on most systems): one of those may be gone before a server listens to it, or
// while the server is restarted. Above 10,080, the highest port that `fetch` refuses to connect to ("bad port"). The bus of a Cluster listens
// 10,000 above.
const FIRST_PORT = 10_100
const PORTS = 10_000
const BUS = 10_000
const given = new Set<number>()

/** A port of the loopback interface that nobody listens to, nor to that of its bus, and that this process was not given before. */
export async function freePort(): Promise<number> {
  for (;;) {
    // By chance: suites that run beside each other must not try the same ports.
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
  /** More arguments of redis-server, e.g. `['--maxmemory', '5mb']`. */
  readonly arguments?: readonly string[]
  /** Port without TLS; a free one by default. */
  readonly port?: number
  readonly sentinel?: boolean
  /** A configuration file's content; it comes before the arguments. */
  readonly config?: string
  /** How an administrator connects, e.g. `{ password: 'x' }`. */
  readonly admin?: Pick<RedisOptions, 'username' | 'password' | 'tls'>
  /** More environment variables, e.g. for a shifted clock. */
  readonly env?: Readonly<Record<string, string>>
}

/** One redis-server on the loopback interface, in a directory of its own, ended with this process at the latest. */
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

  /** Process id while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Whether it was not killed. */
  get running(): boolean {
    const child = this.#child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /**
   * Starts, or starts again on the same port and in the same directory.
   *
   * @param once - more arguments, for this start only
   */
  async start(once: readonly string[] = []): Promise<void> {
    const { sentinel = false, config, arguments: more = [], env } = this.#options
    const arguments_ = ['--bind', '127.0.0.1', '--dir', this.directory, '--port', String(this.port), '--logfile', 'redis.log']
    if (config !== undefined) {
      // Sentinels write their state into it, so a restart must not begin it anew.
      const file = join(this.directory, 'server.conf')
      if (!existsSync(file)) writeFileSync(file, config)
      arguments_.unshift(file)
    }
    // Options given later win over earlier ones.
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
   * Sends a command as the administrator, on a connection of its own: the server may have cut all others.
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

  /** Ends the process at once (kill −9); what it held is lost unless it was told to save. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** Kill −9, and a new, empty server on the same port. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** Hangs: connections stay open, nothing is answered. */
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
