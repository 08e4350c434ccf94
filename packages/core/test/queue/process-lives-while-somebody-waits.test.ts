import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const program = fileURLToPath(new URL('fixtures/waits.ts', import.meta.url))

test('a process does not end before those have gone that wait, and ends then', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', 'tsx', program], { timeout: 25_000 })
  expect({ stdout, stderr }).toEqual({ stdout: 'a\nb\nc\nall\n', stderr: '' })
}, 30_000)
