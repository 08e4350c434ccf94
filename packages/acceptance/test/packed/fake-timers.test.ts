import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mustRun, pnpm, run as runProgram } from '@weir/tooling/run'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { CELLS } from './decided-in-time.ts'

const directory = mkdtempSync(join(tmpdir(), 'weir-fake-timers-'))
const env = { ...process.env, NODE_ENV: 'test', CI: 'true', NODE_OPTIONS: '' }
const page = readFileSync(new URL('../../../../docs/guides/testing.md', import.meta.url), 'utf8')

/** The code of a block on the page. */
function block(info: string): string {
  const code = new RegExp(`^\`\`\`${info}\\n([^]*?)^\`\`\`$`, 'm').exec(page)?.[1]
  if (code === undefined) throw new Error(`The page has no block "${info}"`)
  return code
}

beforeAll(async () => {
  const tarball = (name: string) => `file:${inject('packed').find(({ manifest }) => manifest.name === name)?.tarball}`
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({
      name: 'application',
      private: true,
      type: 'module',
      dependencies: {
        '@weir/core': tarball('@weir/core'),
        '@weir/express': tarball('@weir/express'),
        '@weir/testing': tarball('@weir/testing'),
        express: '^5.1.0',
      },
      devDependencies: { jest: '^30.0.0', sinon: '^21.0.0', supertest: '^7.1.0', vitest: '^4.0.0' },
    }),
  )
  writeFileSync(join(directory, 'pnpm-workspace.yaml'), `packages: []\noverrides:\n  '@weir/core': '${tarball('@weir/core')}'\n`)
  writeFileSync(join(directory, 'app.js'), block('js app'))
  writeFileSync(join(directory, 'limits.vitest.js'), block('js vitest'))
  writeFileSync(join(directory, 'limits.jest.cjs'), block('js jest'))
  writeFileSync(join(directory, 'limits.sinon.js'), block('js sinon'))
  await pnpm(['install', '--prefer-offline', '--no-frozen-lockfile', '--ignore-scripts'], { cwd: directory, env })
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

// Tests with fake timers need the packed files, because Weir looks up the clock in both module systems.
describe("the page's tests pass with", () => {
  const run = async (program: string, ...args: string[]) =>
    mustRun(process.execPath, [join('node_modules', program), ...args], { cwd: directory, env })

  it('vitest', async () => {
    writeFileSync(join(directory, 'vitest.config.js'), `export default { test: { include: ['*.vitest.js'] } }`)
    expect(await run('vitest/vitest.mjs', 'run', '--reporter=json')).toContain('"numPassedTests":1')
  })

  it('Jest', async () => {
    const said = await run('jest/bin/jest.js', '--json', '--rootDir', directory, '--testMatch', '**/*.jest.cjs', '--watchman=false')
    expect(said).toContain('"numPassedTests":1')
  })

  it('sinon', async () => {
    expect(await mustRun(process.execPath, ['--test', 'limits.sinon.js'], { cwd: directory, env })).toMatch(/pass 1\n/)
  })
})

const CODE = { esm: 'mjs', cjs: 'cjs' } as const

/** A program of the application, as a module of either kind. */
function moduleOf(format: keyof typeof CODE, imports: Readonly<Record<string, string>>, body: string): string {
  const lines = Object.entries(imports).map(([from, names]) =>
    format === 'esm' ? `import ${names.replaceAll(':', ' as')} from '${from}'` : `const ${names} = require('${from}')`,
  )
  return `${lines.join('\n')}\nasync function main() {\n${body}\n}\nmain()\n`
}

describe.each(['esm', 'cjs'] as const)('in a module of kind %s', (format) => {
  const extension = CODE[format]

  it('sinon leads to the decisions that a clock of its own does, for each algorithm and coordination', async () => {
    const shared = `decided.${extension}`
    await build({
      entryPoints: [fileURLToPath(new URL('decided-in-time.ts', import.meta.url))],
      outfile: join(directory, shared),
      bundle: true,
      platform: 'node',
      target: 'node20',
      format,
      packages: 'external',
      logLevel: 'error',
    })
    const imports = { sinon: 'sinon', '@weir/testing': '{ manualClock }', [`./${shared}`]: '{ BEGIN, CELLS, decided, load }' }
    const body = `const found = {}
      for (const cell of CELLS) {
        await load(cell)
        const clock = manualClock()
        const expected = await decided(cell, { pass: (time) => clock.advance(time) }, clock)
        let timers
        const way = { begin: () => { timers = sinon.useFakeTimers({ now: BEGIN }) }, pass: (time) => timers.tickAsync(time) }
        const faked = await decided(cell, way)
        timers.restore()
        found[cell.name] = faked === expected ? 'the same' : faked + 'and not ' + expected
      }
      console.log(JSON.stringify(found))`
    writeFileSync(join(directory, `ways.${extension}`), moduleOf(format, imports, body))
    const found = Object.values(JSON.parse(await mustRun(process.execPath, [`ways.${extension}`], { cwd: directory, env })))
    expect(found).toEqual(CELLS.map(() => 'the same'))
  })

  it('the mock timers of node:test are warned of', async () => {
    const body = `mock.timers.enable({ apis: ['Date', 'setTimeout', 'setInterval', 'setImmediate'] })
      createThrottler({ policies: [{ limit: 2, interval: '1m', coordination: 'local' }] }).check('a')
      mock.timers.reset()`
    writeFileSync(
      join(directory, `mocked.${extension}`),
      moduleOf(format, { 'node:test': '{ mock }', '@weir/core': '{ createThrottler }' }, body),
    )
    const { status, output } = await runProgram(process.execPath, [`mocked.${extension}`], { cwd: directory, env })
    expect(output).toMatch(/\[WEIR_WARN_FAKE_TIME\][^\n]*Date is faked, but process\.hrtime is not/)
    expect(status).toBe(0)
  })
})
