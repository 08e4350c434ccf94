import process from 'node:process'

/** File descriptors that must be free before code is loaded: more than the files of any part that is loaded later. */
const FREE = 32

/** Parts that are being loaded. */
let loading = 0

/** Whether code is being loaded. Virtual time stands still meanwhile. */
export function isLoadingCode(): boolean {
  return loading > 0
}

/**
 * Loads a part of the code that is not loaded at the start. All dynamic imports use this function.
 *
 * If no file descriptor is left for a module's file, Node.js 20 treats the module as failed for the life of the process, and so every
 * module that imports it. The import therefore starts only if there are enough descriptors for all files of a part.
 *
 * @throws (rejects) with the system's code, mostly `EMFILE`, if there are too few descriptors. Otherwise as `load` does
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
      // A process without permission to read this file can still load code.
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
