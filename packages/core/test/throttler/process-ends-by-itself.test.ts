import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const program = fileURLToPath(new URL('fixtures/started-throttler.ts', import.meta.url))

interface Outcome {
  readonly code: number | null
  readonly output: string
  readonly errors: string
  /** Milliseconds from the program's last output to its end. */
  readonly lingered: number
}

function run(...args: string[]): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let errors = ''
    let spokeAt = 0
    const deadline = setTimeout(() => child.kill('SIGKILL'), 25_000)
    child.stdout.on('data', (chunk) => {
      output += chunk
      spokeAt = performance.now()
    })
    child.stderr.on('data', (chunk) => {
      errors += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(deadline)
      resolve({ code, output, errors, lingered: performance.now() - spokeAt })
    })
  })
}

test.each([
  ['none', { allowed: 5, state: 'local', blocked: 'blocked' }, 'WEIR_WARN_LOCAL_ONLY'],
  ['memory', { allowed: 5, state: 'synced', blocked: 'blocked' }, ''],
  ['hanging', { allowed: 5, state: 'connecting', blocked: 'blocked' }, ''],
])(
  'a process with a started throttler ends by itself (store: %s)',
  async (mode, said, warning) => {
    const { code, output, errors, lingered } = await run(mode)
    expect({ code, errors: errors.includes(warning) ? '' : errors }).toEqual({ code: 0, errors: '' })
    expect(JSON.parse(output)).toEqual(said)
    expect(lingered).toBeLessThan(5_000)
    if (warning === '') expect(errors).toBe('')
    else expect(errors.split(warning)).toHaveLength(2)
  },
  30_000,
)

test('a process that only waits for close() with a store that hangs ends after it', async () => {
  const { code, errors } = await run('hanging', 'close')
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
}, 30_000)
