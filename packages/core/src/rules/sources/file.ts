import { randomUUID } from 'node:crypto'
import { createReadStream, watch } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { invalidOption } from '../../report/errors.ts'
import { LONGEST_DOCUMENT } from '../parse.ts'
import type { RulesSource } from '../source.ts'

/** Milliseconds between two checks of a file whose file system sends no change events, such as a network file system. */
const INTERVAL = 2_000
/** Longer than an editor or a copying program pauses while it writes one file, in milliseconds. */
const SETTLE = 50

/**
 * Reads rules from a file, and watches it. The file may be written in place, replaced by `rename`, or be a symbolic link that is switched
 * to another file, such as a ConfigMap in Kubernetes. A file that changes is read again until it has stayed the same for 50 ms. Pipes,
 * devices, and files of more than 8,000,000 bytes are not read.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`
 *
 * @example
 * follow(throttler, fileRules('/etc/app/rules.yaml'), { yaml, algorithms: { tokenBucket } })
 */
export function fileRules(path: string | URL): RulesSource {
  if (path instanceof URL ? path.protocol !== 'file:' : typeof path !== 'string' || path === '')
    throw invalidOption('path', String(path), 'the path of a file')
  const file = path instanceof URL ? fileURLToPath(path) : resolve(path)
  let reading: Promise<string> | undefined
  return Object.freeze({
    name: `the file ${file}`,
    interval: INTERVAL,
    settle: SETTLE,
    // A read from a file system that hangs can't be cancelled, and occupies one of the few threads that the whole process has for files and
    // host names. So no second read starts meanwhile.
    read: () => {
      reading ??= readWhole(file).finally(() => {
        reading = undefined
      })
      return reading
    },
    watch: (changed: () => void) => watchFile(file, changed),
    replace: (before: string | undefined, text: string) => replaceFile(file, before, text),
  })
}

/**
 * The text of a regular file of at most 8,000,000 bytes.
 *
 * @throws (rejects) Error for anything else, such as a pipe, a device, a folder or a larger file
 */
export async function readWhole(file: string): Promise<string> {
  // A pipe or a device may never answer, or never end.
  if (!(await stat(file)).isFile()) throw new Error('it is not a regular file')
  const pieces: Buffer[] = []
  let size = 0
  // Bytes are counted during the read, because a file that grows, and a file of `/proc`, have more bytes than their size.
  for await (const piece of createReadStream(file, { end: LONGEST_DOCUMENT })) {
    pieces.push(piece)
    size += piece.length
  }
  if (size > LONGEST_DOCUMENT) throw new Error(`it has more than ${LONGEST_DOCUMENT} bytes, the most that rules may have`)
  return Buffer.concat(pieces).toString('utf8')
}

/** Watches the folder, because a file that replaces another one is not watched itself. */
function watchFile(file: string, changed: () => void): () => void {
  const name = basename(file)
  try {
    const watcher = watch(dirname(file), { persistent: false }, (_, seen) => {
      // A ConfigMap switches the link `..data`.
      if (seen === null || seen === name || seen.startsWith('..')) changed()
    })
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    // The folder does not exist yet, or there are too many watchers. The file is still read every two seconds.
    return () => {}
  }
}

async function replaceFile(file: string, before: string | undefined, text: string): Promise<boolean> {
  // The lock is kept from the comparison to the replacement.
  const lock = await open(`${file}.lock`, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? new Error(`another process writes it. If none does, delete ${file}.lock`) : error
  })
  try {
    if ((await textOf(file)) !== before) return false
    await writeWhole(file, text)
    return true
  } finally {
    await lock.close()
    await rm(`${file}.lock`, { force: true })
  }
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readWhole(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Writes a file so that no reader ever sees a part of it, even if there are several writers. A loss of power leaves the old file or the new
 * one.
 */
export async function writeWhole(file: string, text: string): Promise<void> {
  // The name is unique to this call, because workers of one service may write the same file.
  const beside = `${file}.${randomUUID()}.new`
  try {
    const handle = await open(beside, 'wx')
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(beside, file)
  } catch (error) {
    await rm(beside, { force: true }).catch(() => {})
    throw error
  }
}
