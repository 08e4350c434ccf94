import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '@weir/tooling/bundle'
import { afterAll } from 'vitest'

/** An example that runs in its own process, as its README describes. */
export interface Program {
  /** The URL on which it listens. */
  readonly url: string
  readonly output: () => string
  /** Sends a signal that does not end it. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Ends it with a signal, and resolves with its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** Milliseconds. A start compiles much, which takes long on a machine that runs other tests too. */
const DEADLINE = 120_000

/**
 * Starts an example on a free port, and waits until it prints its URL.
 *
 * @param file of its sources
 */
export async function startProgram(
  example: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  file = 'main',
): Promise<Program> {
  const { child, output } = await launch(example, args, env, file)
  return listening(example, child, output)
}

/** Runs Node.js in a folder, and waits until the program prints its URL. */
export function startNode(directory: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Program> {
  const { child, output } = node(directory, args, env)
  return listening(args.join(' '), child, output)
}

async function listening(name: string, child: ChildProcess, output: () => string): Promise<Program> {
  const deadline = Date.now() + DEADLINE
  for (;;) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output())?.[0]
    if (url !== undefined) return { url, output, signal: (signal) => child.kill(signal), stop: (signal = 'SIGTERM') => end(child, signal) }
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`${name} did not start: ${output()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Runs an example that ends by itself. */
export async function runProgram(example: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const { child, output } = await launch(example, args, {}, 'main')
  await once(child, 'close')
  return { code: child.exitCode, output: output() }
}

export const directoryOf = (example: string): string => fileURLToPath(new URL(`../../${example}`, import.meta.url))

/** The bundles of programs and their folders. */
const bundled = new Map<string, Promise<string>>()
const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Bundles an example into one file, so that its sources and ours are compiled once instead of in each process. */
async function bundle(example: string, file: string): Promise<string> {
  const directory = directoryOf(example)
  const { dependencies } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
  const foreign = Object.keys(dependencies).filter((name) => !name.startsWith('@weir/'))
  const folder = await bundlePrograms(directory, [`src/${file}.ts`], foreign)
  folders.push(folder)
  return join(folder, `${file}.mjs`)
}

/** Examples that run from their sources. `outgoing` starts another file of its folder, and `nestjs` needs its imports in order. */
const AS_THEY_ARE = ['outgoing', 'nestjs']

/** The arguments for Node.js that start an example. */
async function programOf(example: string, file: string): Promise<readonly string[]> {
  if (AS_THEY_ARE.includes(example)) return ['--conditions=@weir/source', '--import', 'tsx', `src/${file}.ts`]
  const name = join(example, file)
  let program = bundled.get(name)
  if (program === undefined) bundled.set(name, (program = bundle(example, file)))
  return [await program]
}

async function launch(
  example: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  file: string,
): Promise<{ child: ChildProcess; output: () => string }> {
  return node(directoryOf(example), [...(await programOf(example, file)), ...args], env)
}

function node(directory: string, args: readonly string[], env: NodeJS.ProcessEnv): { child: ChildProcess; output: () => string } {
  const { REDIS_URL: _, ...own } = process.env
  const child = spawn(process.execPath, args, { cwd: directory, env: { ...own, PORT: '0', ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (data: string) => (text += data))
  return { child, output: () => text }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  child.kill(signal)
  await once(child, 'exit')
  return child.exitCode
}
