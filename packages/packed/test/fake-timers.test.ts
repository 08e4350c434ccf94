import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packPublicPackages } from '@weir/tooling/pack'
import { mustRun, pnpm } from '@weir/tooling/run'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const directory = mkdtempSync(join(tmpdir(), 'weir-fake-timers-'))
const env = { ...process.env, NODE_ENV: 'test', CI: 'true', NODE_OPTIONS: '' }
const page = readFileSync(new URL('../../../docs/guides/testing.md', import.meta.url), 'utf8')

/** A block of the page. */
function block(info: string): string {
  const code = new RegExp(`^\`\`\`${info}\\n([^]*?)^\`\`\`$`, 'm').exec(page)?.[1]
  if (code === undefined) throw new Error(`The page has no block "${info}"`)
  return code
}

beforeAll(async () => {
  const packed = await packPublicPackages(join(directory, 'tarballs'))
  const tarball = (name: string) => `file:${packed.find(({ manifest }) => manifest.name === name)?.tarball}`
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({
      name: 'application',
      private: true,
      type: 'module',
      dependencies: { '@weir/core': tarball('@weir/core'), '@weir/express': tarball('@weir/express'), express: '^5.1.0' },
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

// What a test gets to do with time depends on what is packed: the looked up clock in both module systems.
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
