import { copyFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '@weir/tooling/run'
import { type Runtime, runtimeCommand } from '@weir/tooling/runtimes'

/** The output of `programs/on-runtimes.ts`. */
export interface Counts {
  readonly background: number
  readonly servers: readonly { readonly allowed: number; readonly rejected: number; readonly headers: Readonly<Record<string, string>> }[]
}

/** Runs a TypeScript program in a project. Returns its exit code and its output, which includes warnings. */
export async function runOn(
  runtime: Runtime,
  directory: string,
  program: string,
  args: readonly string[] = [],
): Promise<{ status: number; output: string }> {
  const source = fileURLToPath(new URL(program, import.meta.url))
  copyFileSync(source, join(directory, basename(program)))
  const command = runtimeCommand(runtime)
  const { status, output } = await run(command.file, [...command.args, basename(program), ...args], { cwd: directory })
  return { status, output }
}
