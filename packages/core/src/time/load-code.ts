import process from 'node:process'

/** File descriptors that must be free before code is loaded: more than the files of any part that is loaded later. */
const FREE = 32

/** Parts that are being loaded. */
let loading = 0

/** Whether code is being loaded, for virtual time: it stands still meanwhile. */
export function isLoadingCode(): boolean {
  return loading > 0
}

/**
 * Loads a part of the code that is not there from the start. All dynamic imports go through here.
 *
 * Node.js 20 keeps a module whose file could not be read, for want of descriptors, as failed for the life of the process, and so every
 * module that imports it. The import is therefore not begun until there are enough descriptors for all files of a part.
 *
 * @throws (rejects) with the system's code, mostly `EMFILE`, if there are too few descriptors; or as `load` does
 */
export async function loadCode<T>(load: () => Promise<T>): Promise<T> {
  const fs = process.getBuiltinModule?.('node:fs')
  if (fs !== undefined) {
    const opened: number[] = []
    try {
      while (opened.length < FREE) opened.push(fs.openSync(process.execPath, 'r'))
    } catch (error) {
      const { code } = error as { code?: unknown }
      if (code === 'EMFILE' || code === 'ENFILE')
        throw Object.assign(new Error(`${code}: too many open files, ${FREE} more are needed`), { code })
      // A process that may not read this file is no reason to load nothing.
    } finally {
      for (const one of opened) fs.closeSync(one)
    }
  }
  loading++
  try {
    return await load()
  } finally {
    loading--
  }
}
