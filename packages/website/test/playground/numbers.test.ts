import { fileURLToPath } from 'node:url'
import { run as program } from '@weir/tooling/run'
import { expect, test } from 'vitest'
import { run } from '../../src/playground/runs/run.ts'
import { readAddress, writeAddress } from '../../src/playground/settings/settings.ts'
import { written } from '../../src/playground/tables/write.ts'

const MAIN = fileURLToPath(new URL('../../src/playground/main.ts', import.meta.url))

test('the command prints the numbers of a shared address', async () => {
  const address = 'https://docs.test/some/where/playground/index.html?scene=far&limit=20&load=2&seed=3&embed#top'
  const settings = readAddress(new URL(address).search)
  const { status, stdout } = await program(process.execPath, ['--conditions=@weir/source', '--import', 'tsx', MAIN, '--numbers', address])
  expect(status).toBe(0)
  expect(stdout).toBe(`${writeAddress(settings)}\n\n${written(await run(settings))}\n`)
})
