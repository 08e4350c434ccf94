import { readdirSync, readFileSync } from 'node:fs'

/** CPU milliseconds of a process and all its descendants, from Linux's figures of their threads. NaN on other systems. */
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

/** Adds up the threads of a process. The first field of each is its nanoseconds of CPU. */
function threadsOf(pid: number): number {
  const folder = `/proc/${pid}/task`
  let nanoseconds = 0
  try {
    for (const thread of readdirSync(folder)) nanoseconds += Number(read(`${folder}/${thread}/schedstat`).split(' ')[0])
  } catch {
    // The process has just ended.
  }
  return nanoseconds / 1e6
}

/** Reads the parent of a process. The state and the parent follow the name, which may contain any characters. */
function parentOf(pid: string): number {
  const text = read(`/proc/${pid}/stat`)
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
}

/** Reads a file, or returns nothing if its process has just ended. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
