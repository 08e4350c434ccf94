import { spawnSync } from 'node:child_process'

/** The same program on every run: one thread, the same hashes, and compiled at the same requests. */
export const REPEATABLE: readonly string[] = ['--predictable', '--hash-seed=1', '--random-seed=1']
export const CALLGRIND: readonly string[] = ['valgrind', '--tool=callgrind', '--smc-check=all-non-file', '--callgrind-out-file=/dev/null']

/** Whether instructions can be counted here; says so where they can't. */
export function canCount(bench: string): boolean {
  if (spawnSync('valgrind', ['--version']).status === 0) return true
  console.log(`${bench}: skipped, as valgrind is not installed (Debian: apt-get install valgrind)`)
  return false
}

/** How many instructions a process took, by what valgrind said at its end. */
export function collected(said: string): number {
  const count = /Collected : (\d+)/.exec(said)?.[1]
  if (count === undefined) throw new Error(`valgrind told no count:\n${said.slice(-2000)}`)
  return Number(count)
}
