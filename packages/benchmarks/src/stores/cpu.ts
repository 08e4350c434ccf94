import { readdirSync, readFileSync } from 'node:fs'

/** Of Linux, in all its builds: clock ticks in a second as programs are told of them. */
const TICKS = 100

/** CPU milliseconds of a process and all that descend from it, by what Linux tells. NaN elsewhere. */
export function cpuOf(pid: number): number {
  const children = new Map<number, number[]>()
  const ticks = new Map<number, number>()
  try {
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue
      const fields = statOf(name)
      if (fields === undefined) continue
      // Behind the name: state, parent, …, and at 11 and 12 the ticks in user and system mode.
      const [, parent, own] = [fields[0], Number(fields[1]), Number(fields[11]) + Number(fields[12])]
      ticks.set(Number(name), own)
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    }
  } catch {
    return Number.NaN
  }
  const sum = (of: number): number => (ticks.get(of) ?? 0) + (children.get(of) ?? []).reduce((all, child) => all + sum(child), 0)
  return (sum(pid) * 1_000) / TICKS
}

/** A process that has just ended has none. */
function statOf(pid: string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
