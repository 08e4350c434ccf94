import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, cpSync, createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findEtcdServer } from './etcd-server.js'
import { guard } from './guard.ts'
import { freePort, until } from './redis-servers.ts'

/** The reason why tests can't start a server here, or undefined if they can. */
export const NO_ETCD: string | undefined = findEtcdServer() === undefined ? 'etcd is not installed' : undefined

// Servers must not outlive the tests, even if a test run crashes.
const running = new Set<ChildProcess>()
const directories = new Set<string>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

/** A folder in memory if possible, because writes to a disk are slow and no test needs the data after a power loss. */
function scratch(): string {
  try {
    accessSync('/dev/shm', constants.W_OK)
    return '/dev/shm'
  } catch {
    return tmpdir()
  }
}

export interface EtcdServerOptions {
  /** Further arguments of etcd, e.g. `['--quota-backend-bytes', '2000000']`. */
  readonly arguments?: readonly string[]
  /** Further environment variables, e.g. for a shifted clock. */
  readonly env?: Readonly<Record<string, string>>
  /** The certificate and key files, if clients connect with TLS. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

/** The URLs at which the members of a cluster reach each other, by name. */
type Peers = ReadonlyMap<string, string>

/**
 * One etcd on the loopback interface, a cluster of its own or a member of one. Its data is in its own directory. It ends with this process
 * at the latest.
 */
export class EtcdServer {
  readonly url: string
  readonly directory: string
  readonly #name: string
  readonly #peers: Peers
  readonly #options: EtcdServerOptions
  #child: ChildProcess | undefined

  private constructor(port: number, name: string, peers: Peers, options: EtcdServerOptions) {
    this.url = `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
    this.#name = name
    this.#peers = peers
    this.#options = options
    this.directory = mkdtempSync(join(scratch(), 'weir-etcd-'))
    directories.add(this.directory)
  }

  static async start(options: EtcdServerOptions = {}): Promise<EtcdServer> {
    const [server] = await EtcdServer.startCluster(1, options)
    return server as EtcdServer
  }

  /** Starts the members of one cluster, and resolves once they have a leader. */
  static async startCluster(members: number, options: EtcdServerOptions = {}): Promise<EtcdServer[]> {
    const ports = await freePorts(2 * members)
    const peers = new Map(ports.slice(members).map((port, at) => [`member-${at}`, `http://127.0.0.1:${port}`]))
    const servers = [...peers.keys()].map((name, at) => new EtcdServer(ports[at] as number, name, peers, options))
    await Promise.all(servers.map((server) => server.start()))
    return servers
  }

  /** The process id while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts the server, or starts it again on the same ports and with the same data. */
  async start(): Promise<void> {
    const { arguments: more = [], env, tls } = this.#options
    const clients = ['--listen-client-urls', this.url, '--advertise-client-urls', this.url]
    const peer = this.#peers.get(this.#name) as string
    const cluster = [...this.#peers].map(([name, url]) => `${name}=${url}`).join(',')
    const peers = ['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', cluster]
    const secured = tls === undefined ? [] : ['--cert-file', tls.cert, '--key-file', tls.key]
    const own = ['--name', this.#name, '--data-dir', this.#data, '--logger', 'zap', '--snapshot-count', '100000']
    const child = spawn(findEtcdServer() ?? 'etcd', [...own, ...clients, ...peers, ...secured, ...more], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    this.#child = child
    running.add(child)
    guard(child, this.directory)
    const log = createWriteStream(join(this.directory, 'etcd.log'), { flags: 'a' })
    log.on('error', () => {})
    child.stdout?.pipe(log)
    child.stderr?.pipe(log)
    let failure: Error | undefined
    child.once('error', (error) => {
      failure = error
    })
    child.once('exit', () => running.delete(child))
    await until(async () => {
      if (failure !== undefined || child.exitCode !== null) return true
      // For a server with TLS an open port is enough, because `fetch` may not trust its certificate.
      if (tls !== undefined) return listens(this.url)
      const response = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(1_000) })
      return response.ok && (await response.text()).includes('true')
    }, `etcd answers at ${this.url}`)
    if (failure !== undefined) throw new Error('etcd can not be started; is it installed?', { cause: failure })
    if (child.exitCode !== null) throw new Error(`etcd ended with ${child.exitCode}; see ${join(this.directory, 'etcd.log')}.`)
  }

  /** Whether it leads its cluster. */
  async leads(): Promise<boolean> {
    const { header, leader } = await this.ask('/v3/maintenance/status', {})
    return (header as { readonly member_id: string }).member_id === leader
  }

  /** Sends a request to its JSON gateway. */
  async ask(path: string, body: object, token?: string): Promise<Record<string, unknown>> {
    const headers = { 'content-type': 'application/json', ...(token !== undefined && { authorization: token }) }
    const response = await fetch(this.url + path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers,
      signal: AbortSignal.timeout(10_000),
    })
    return (await response.json()) as Record<string, unknown>
  }

  /** All keys that begin with a text, with their leases (`'0'` for a key without one). */
  async keys(prefix: string): Promise<{ readonly name: string; readonly lease: string; readonly value: string }[]> {
    const bytes = (text: string): string => Buffer.from(text).toString('base64')
    const end = prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
    const { kvs = [] } = await this.ask('/v3/kv/range', { key: bytes(prefix), range_end: bytes(end) })
    return (kvs as readonly Record<string, string | undefined>[]).map(({ key = '', lease = '0', value = '' }) => ({
      name: Buffer.from(key, 'base64').toString(),
      lease,
      value: Buffer.from(value, 'base64').toString(),
    }))
  }

  /** Ends the process at once (kill −9). Its data stays. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** Copies the data of a server that was killed, for `restore`. */
  backUp(): void {
    cpSync(this.#data, this.#backup, { recursive: true })
  }

  /** Kills the server (kill −9), and starts it again with the data from `backUp`. */
  async restore(): Promise<void> {
    await this.kill()
    rmSync(this.#data, { recursive: true })
    cpSync(this.#backup, this.#data, { recursive: true })
    await this.start()
  }

  /** Kills the server (kill −9), and starts an empty one on the same ports. */
  async restartEmpty(): Promise<void> {
    await this.kill()
    rmSync(this.#data, { recursive: true, force: true })
    await this.start()
  }

  /** Stops the process: connections stay open, but it answers nothing. Resolves once the process is stopped. */
  async pause(): Promise<void> {
    const { pid } = this.#child ?? {}
    this.#child?.kill('SIGSTOP')
    await until(() => !existsSync('/proc/self/stat') || /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')), 'etcd is stopped')
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

  get #data(): string {
    return join(this.directory, 'data')
  }

  get #backup(): string {
    return join(this.directory, 'backup')
  }
}

/** Different ports from `freePort`. */
async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) ports.add(await freePort())
  return [...ports]
}

async function listens(url: string): Promise<boolean> {
  const { connect } = await import('node:net')
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  try {
    await once(socket, 'connect')
    return true
  } finally {
    socket.destroy()
  }
}
