import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** An example that runs in a process of its own, as its README says. */
export interface Program {
  /** What it listens on. */
  readonly url: string
  readonly output: () => string
  /** Ends it with a signal; returns its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

const DEADLINE = 30_000

/** Starts an example on a free port and waits until it says where it listens. */
export async function startProgram(example: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Program> {
  const { child, output } = launch(example, args, env)
  const deadline = Date.now() + DEADLINE
  for (;;) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output())?.[0]
    if (url !== undefined) return { url, output, stop: (signal = 'SIGTERM') => end(child, signal) }
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`${example} did not start: ${output()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Runs an example that is to end by itself. */
export async function runProgram(example: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const { child, output } = launch(example, args, {})
  await once(child, 'close')
  return { code: child.exitCode, output: output() }
}

function launch(example: string, args: readonly string[], env: NodeJS.ProcessEnv): { child: ChildProcess; output: () => string } {
  const { REDIS_URL: _, ...own } = process.env
  const child = spawn(process.execPath, ['--conditions=@weir/source', '--import', 'tsx', 'src/main.ts', ...args], {
    cwd: fileURLToPath(new URL(`../../${example}`, import.meta.url)),
    env: { ...own, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
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
