import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { file, line, rules } from './weir.ts'

const PROGRAM = fileURLToPath(new URL('./fixtures/main.ts', import.meta.url))
const start = (...args: string[]) =>
  spawn(process.execPath, ['--no-warnings', '--conditions=@weir/source', '--import', 'tsx', PROGRAM, ...args])

it('ends quietly where nobody reads on', { timeout: 60_000 }, async () => {
  const log = file('access.log', line(0, '192.0.2.1').repeat(50))
  const weir = start('plan', log, '--rules', rules('rules.json', {}), '--format', 'json')
  // Closes the pipe early, like `head`.
  weir.stdout.destroy()
  let said = ''
  weir.stderr.on('data', (piece) => {
    said += piece
  })
  const [code] = await once(weir, 'close')
  expect([code, said]).toEqual([0, ''])
})
