import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inject } from 'vitest'
import { type RunSummary, TOO_LATE } from '../../src/report/summary.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The demo in a separate process. */
export class Demo {
  readonly process: ChildProcess
  stdout = ''
  stderr = ''

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { REDIS_URL: _, ...own } = process.env
    this.process = spawn(process.execPath, [join(inject('programs'), 'main.mjs'), ...args], {
      cwd: ROOT,
      env: { ...own, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
  }

  async ended(): Promise<Ended> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, 'close')
    return { code: this.process.exitCode, stdout: this.stdout, stderr: this.stderr }
  }
}

export function runDemo(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ended> {
  return new Demo(args, env).ended()
}

/**
 * Runs the demo with `--json`. If `quiet` is false, the machine was too busy to judge the accuracy. Everything else can still be checked.
 */
export async function summarized<Summary extends RunSummary>(
  args: readonly string[],
): Promise<{ summary: Summary; code: number | null; quiet: boolean }> {
  const { code, stdout, stderr } = await runDemo([...args, '--json'])
  if (stderr !== '') throw new Error(stderr)
  const summary = JSON.parse(stdout) as Summary
  return { summary, code, quiet: summary.latestMs < TOO_LATE }
}

/** The ids of all processes that a process has started, directly or indirectly. */
export function descendants(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const line of execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).split('\n')) {
    const [child, parent] = line.trim().split(/\s+/).map(Number)
    if (child !== undefined && parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), child])
  }
  const found: number[] = []
  for (const queue = [pid]; queue.length > 0; ) {
    const own = children.get(queue.shift() as number) ?? []
    found.push(...own)
    queue.push(...own)
  }
  return found
}

export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // Ended, but not yet reaped by the process that adopted it. In a container there may be none that does.
  return !execFileSync('sh', ['-c', `ps -o stat= -p ${pid} || true`], { encoding: 'utf8' })
    .trim()
    .startsWith('Z')
}

/** The command line of a process. */
export function commandOf(pid: number): string {
  return execFileSync('ps', ['-o', 'args=', '-p', `${pid}`], { encoding: 'utf8' }).trim()
}
