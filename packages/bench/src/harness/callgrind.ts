import { spawnSync } from 'node:child_process'

/** Options that make a program the same on every run: one thread, the same hashes, and compilation at the same moments. */
export const REPEATABLE: readonly string[] = ['--predictable', '--hash-seed=1', '--random-seed=1']
/** Runs a program and counts the instructions of its process, without instructions of the kernel. */
export const CALLGRIND: readonly string[] = ['valgrind', '--tool=callgrind', '--smc-check=all-non-file', '--callgrind-out-file=/dev/null']

/** Whether instructions can be counted on this machine. Prints a message if not. */
export function hasValgrind(what: string): boolean {
  const there = spawnSync('valgrind', ['--version']).status === 0
  if (!there) console.log(`${what}: skipped, as valgrind is not installed (Debian: apt-get install valgrind)`)
  return there
}

/** Reads the count from the standard error of valgrind. */
export function collected(said: string): number {
  const count = /Collected : (\d+)/.exec(said)?.[1]
  if (count === undefined) throw new Error(`valgrind told no count:\n${said.slice(-2000)}`)
  return Number(count)
}
