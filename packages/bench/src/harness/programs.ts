import type { ChildProcess } from 'node:child_process'
import { CompiledPrograms, type ProgramOptions } from './compiled-programs.ts'

/** The programs of the benches. */
const NAMES = [
  'budgets',
  'decision',
  'local',
  'memory',
  'http/server',
  'sync',
  'redis',
  'scale',
  'central',
  'etcd',
  'away',
  'snapshot',
  'plan',
  'rules',
  'update',
  'flood',
  'import',
  'windows',
  'worst',
  'waiting/cost',
  'waiting/keys',
  'waiting/slow',
  'waiting/pace',
  'stores/cost',
  'stores/node',
  'compat',
  'compat/pair',
  'runtimes/function',
] as const
type ProgramName = (typeof NAMES)[number]

const programs = new CompiledPrograms<ProgramName>(new URL('../../', import.meta.url), { asBuilt: NAMES })
/** The folder of the compiled programs. */
export const PROGRAMS: string = programs.directory

/** Options of Node.js with which a program measures the sources instead of the built packages, for tests. */
export const FROM_SOURCE: readonly string[] = ['--conditions=@weir/source', '--import', import.meta.resolve('tsx')]

/** Calls `CompiledPrograms.start`. */
export function startProgram(name: ProgramName, input: unknown, options?: ProgramOptions): Promise<ChildProcess> {
  return programs.start(name, input, options)
}

/** Calls `CompiledPrograms.run`. */
export function runProgram<Result>(name: ProgramName, input: unknown, options?: ProgramOptions): Promise<Result> {
  return programs.run<Result>(name, input, options)
}

/** Calls `CompiledPrograms.printed`. */
export function printed(name: ProgramName, input: unknown, options?: ProgramOptions): Promise<string> {
  return programs.printed(name, input, options)
}

/**
 * Runs contenders in turn, each time in a new process, for some rounds, so that a slow minute of the machine affects all of them
 * alike.
 */
export async function inTurn<Contender, Result>(
  contenders: readonly Contender[],
  rounds: number,
  run: (contender: Contender, round: number) => Promise<Result>,
): Promise<Map<Contender, Result[]>> {
  const results = new Map<Contender, Result[]>(contenders.map((contender) => [contender, []]))
  for (let round = 0; round < rounds; round++) {
    for (const contender of contenders) results.get(contender)?.push(await run(contender, round))
  }
  return results
}
