import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** A redis-server of a test, on a free port. */
export interface PrivateRedis {
  readonly url: string
  stop(): Promise<void>
}

/** Starts a redis-server, or returns undefined if it is not installed. */
export async function startRedis(program: string = process.env['REDIS_SERVER'] ?? 'redis-server'): Promise<PrivateRedis | undefined> {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  const folder = mkdtempSync(join(tmpdir(), 'weir-examples-'))
  const port = await freePort()
  const child = spawn(program, ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--dir', folder], { stdio: 'ignore' })
  for (let i = 0; i < 500 && !(await answers(port)); i++) await new Promise((resolve) => setTimeout(resolve, 20))
  return { url: `redis://127.0.0.1:${port}`, stop: () => stop(child, folder) }
}

async function stop(child: ChildProcess, folder: string): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
  rmSync(folder, { recursive: true, force: true })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write('PING\r\n'))
    socket.once('data', () => resolve(socket.destroy() && true))
    socket.once('error', () => resolve(false))
  })
}

/** The number of its open connections. */
export async function connectionsOf(redis: PrivateRedis): Promise<number> {
  // One of them is this one.
  return (await commands(redis, 'CLIENT LIST')).split('\n').filter((line) => line.startsWith('id=')).length - 1
}

/** Closes all connections, as servers and networks do with idle ones. */
export async function closeConnections(redis: PrivateRedis): Promise<void> {
  await commands(redis, 'CLIENT KILL TYPE normal', 'CLIENT KILL TYPE pubsub')
}

async function commands({ url }: PrivateRedis, ...lines: readonly string[]): Promise<string> {
  const { port, hostname } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname }, () => socket.write(`${[...lines, 'QUIT'].join('\r\n')}\r\n`))
  return await text(socket)
}
