import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CopiedPackages } from './copied-packages.ts'
import { FOLDER, REGISTRY, ROW } from './resting-window.ts'

const RULES = JSON.stringify({
  version: 1,
  policies: [{ name: 'api', limit: 3, interval: '1m', key: 'all', coordination: 'local', algorithm: 'restingWindow' }],
})

/** A parent with a child, whose requests the parent decides, and a document of rules. */
const PROGRAM = `
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { algorithms, createThrottler } from '../src/index.ts'
import { ipcStore, serveIpc } from '../src/ipc/index.ts'
import { checkRules } from '../src/rules/index.ts'

const algorithm = algorithms.restingWindow()
if (process.send) {
  const policy = { limit: 3, interval: '1h', coordination: 'central', storeTimeout: '30s', failMode: 'closed', algorithm }
  const throttler = createThrottler({ policies: [policy], store: ipcStore({ timeout: '30s' }) })
  const decisions = []
  for (let i = 0; i < 5; i++) decisions.push(await throttler.checkAsync('a'))
  console.log('decided', decisions.map(({ allowed, reason }) => (allowed ? 'allowed' : reason)).join(' '))
  await throttler.close()
  process.disconnect()
} else {
  const { policies } = checkRules({ value: ${RULES} }, { algorithms })
  console.log('parsed', policies[0].algorithm.id)
  serveIpc()
  fork(fileURLToPath(import.meta.url))
}
`

/** Replaces the CLI's own start file, which has another place after a build. */
const CLI = "import { main } from './main.ts'\nawait main(new URL('../package.json', import.meta.url))\n"

let packages: CopiedPackages

beforeAll(() => {
  packages = new CopiedPackages()
  packages.write('core/src/rules.json', RULES)
  packages.write('core/test/program.ts', PROGRAM)
  packages.write('cli/src/started.ts', CLI)
  packages.write(
    'testing/tsconfig.row.json',
    JSON.stringify({ extends: '../../tsconfig.base.json', files: ['test/algorithms-keep-the-contract.test.ts'] }),
  )
  for (const [file, text] of Object.entries(FOLDER)) packages.write(`core/src/algorithms/resting-window/${file}`, text)
})

afterAll(() => packages.remove())

/** The output of the CLI for a document. */
const check = (name: string) => packages.node('cli/src/started.ts', 'check', packages.path(`core/src/${name}.json`))

/** The suite of the contract, by the titles of its tests. */
const contract = (titles: string) =>
  packages.bin('testing', 'vitest/vitest.mjs', 'run', 'algorithms-keep', '--reporter=verbose', '-t', titles)
const COMPLETE = 'all algorithms of core'

describe('a local algorithm in a folder of its own', () => {
  test('is not known without its lines in the list of built-in algorithms', async () => {
    const [checked, ran] = await Promise.all([check('rules'), packages.node('core/test/program.ts')])
    expect(checked.code).not.toBe(0)
    expect(checked.output).toContain('"restingWindow", which is not in "algorithms"')
    expect(ran.output).toContain('restingWindow is not a function')
  })

  describe('with its lines', () => {
    beforeAll(() => {
      for (const line of REGISTRY) packages.edit(line)
    })

    test('is missed by the algorithm contract', async () => {
      const { code, output } = await contract(COMPLETE)
      expect(code).not.toBe(0)
      expect(output).toContain('resting-window')
    })

    test('is named by the CLI, which accepts rules with it', async () => {
      packages.write('core/src/wrong.json', RULES.replace('restingWindow', 'restlessWindow'))
      const [right, wrong] = await Promise.all(['rules', 'wrong'].map(check))
      expect(right).toMatchObject({ code: 0, output: expect.stringContaining('The rules are valid') })
      expect(wrong?.code).not.toBe(0)
      expect(wrong?.output).toContain('"restingWindow"')
    })

    test('is parsed by rules, and decided by a parent process for its children', async () => {
      const { code, output } = await packages.node('core/test/program.ts')
      expect(output).toContain('parsed resting-window')
      expect(output).toContain('decided allowed allowed allowed limit limit')
      expect(code).toBe(0)
    })

    test('keeps the algorithm contract with a row there, and its types fit', async () => {
      packages.edit(ROW)
      const [kept, types] = await Promise.all([
        contract(`${COMPLETE}|restingWindow keeps`),
        packages.bin('testing', 'typescript/bin/tsc', '-p', 'tsconfig.row.json'),
      ])
      expect(kept.output).toContain('restingWindow keeps the algorithm contract')
      expect(kept.code, kept.output).toBe(0)
      expect(types.code, types.output).toBe(0)
    })
  })
})
