import fs from 'node:fs'
import { onTestFinished, vi } from 'vitest'

/** Fails the attempts of `loadCode` to reserve file descriptors, as if the process had none left, until `end` is called. */
export function outOfFiles(): { readonly tries: number; end(): void } {
  const open = fs.openSync
  let tries = 0
  const spy = vi.spyOn(fs, 'openSync').mockImplementation((path, ...more) => {
    if (path !== process.execPath) return open(path, ...more)
    tries++
    throw Object.assign(new Error('EMFILE: too many open files, open'), { code: 'EMFILE' })
  })
  const end = (): void => spy.mockRestore()
  onTestFinished(end)
  return {
    get tries() {
      return tries
    },
    end,
  }
}
