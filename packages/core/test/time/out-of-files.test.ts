import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const program = fileURLToPath(new URL('fixtures/out-of-files.ts', import.meta.url))

test.skipIf(process.platform === 'win32')(
  'a process without file descriptors goes on by its limits, and loads what it needs once there are some',
  async () => {
    const node = ['--conditions=@weir/source', '--import', 'tsx', program]
    const run = promisify(execFile)('sh', ['-c', 'ulimit -n 256; exec "$0" "$@"', process.execPath, ...node], { timeout: 50_000 })
    const { stdout } = await run
    const waiting = { acquired: 20, delayed: 20, paced: true }
    expect(JSON.parse(stdout)).toEqual({
      before: { counted: 2, central: 0, ...waiting },
      after: { counted: true, central: true, acquired: true, delayed: true },
      now: { counted: 2, acquired: 25, delayed: true, paced: true },
      // One for each of five throttlers, and one about the missing store.
      warnings: 6,
    })
  },
  60_000,
)
