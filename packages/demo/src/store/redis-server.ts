import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DemoError } from '../errors.ts'

const START_DEADLINE = 10_000

/** The redis-server program to start, or undefined if there is none. */
export function installedRedis(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const program = env['REDIS_SERVER'] ?? 'redis-server'
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore', timeout: 5000 })
    return program
  } catch {
    return undefined
  }
}

/** A private redis-server on a free port of the loopback interface, without persistence, in its own folder. */
export class RedisServer {
  readonly version: string
  port = 0
  readonly #program: string
  readonly #folder: string
  #process: ChildProcess | undefined

  constructor(program: string) {
    this.#program = program
    this.version = /v=(\S+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1] ?? ''
    this.#folder = mkdtempSync(join(tmpdir(), 'weir-demo-'))
  }

  /** Starts the server and waits until it answers. A restart uses the same port. */
  async start(): Promise<void> {
    if (this.port === 0) this.port = await freePort()
    const options = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', this.#folder]
    // A separate process group, because Ctrl-C in the terminal is for the demo, which still needs its store to finish.
    this.#process = spawn(this.#program, options, { stdio: 'ignore', detached: true })
    let ended = false
    this.#process.once('exit', () => (ended = true))
    this.#process.once('error', () => (ended = true))
    const deadline = Date.now() + START_DEADLINE
    while (!(await answers(this.port))) {
      if (ended || Date.now() > deadline) throw new DemoError(`redis-server does not answer on port ${this.port}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** Kills the server like a crash, without saving and without a shutdown. */
  kill(): void {
    this.#process?.kill('SIGKILL')
    this.#process = undefined
  }

  remove(): void {
    this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 500 }, () => socket.write('PING\r\n'))
    const done = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    // A server that is still loading answers with an error.
    socket.once('data', (data) => done(data.toString('latin1').startsWith('+PONG')))
    socket.once('error', () => done(false))
    socket.once('timeout', () => done(false))
  })
}
