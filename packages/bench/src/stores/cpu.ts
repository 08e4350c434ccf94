import { readdirSync, readFileSync } from 'node:fs'

/** CPU milliseconds of a process and all that descend from it, by what Linux tells of their threads. NaN elsewhere. */
export function cpuOf(pid: number): number {
  const children = new Map<number, number[]>()
  try {
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue
      const parent = parentOf(name)
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    }
    const sum = (of: number): number => threadsOf(of) + (children.get(of) ?? []).reduce((all, child) => all + sum(child), 0)
    return sum(pid)
  } catch {
    return Number.NaN
  }
}

/** Nanoseconds on a processor are the first field. */
function threadsOf(pid: number): number {
  const folder = `/proc/${pid}/task`
  let nanoseconds = 0
  try {
    for (const thread of readdirSync(folder)) nanoseconds += Number(read(`${folder}/${thread}/schedstat`).split(' ')[0])
  } catch {
    // It has just ended.
  }
  return nanoseconds / 1e6
}

/** Behind the name, which may hold anything: the state, and the parent. */
function parentOf(pid: string): number {
  const text = read(`/proc/${pid}/stat`)
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
}

/** A process that has just ended has no such file. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
