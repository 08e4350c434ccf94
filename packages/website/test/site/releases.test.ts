import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mustRun } from '@weir/tooling/run'
import { afterAll, expect, test } from 'vitest'
import { buildReleases } from '../../src/site/releases.ts'

const scratch = mkdtempSync(join(tmpdir(), 'weir-releases-test-'))
const root = join(scratch, 'repository')
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const git = (...args: string[]) => mustRun('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args], { cwd: root })

/** Commits and tags a release whose site shows the commit and the flags of its build. */
async function release(tag: string): Promise<void> {
  writeFileSync(join(root, 'release.txt'), tag)
  await git('add', '.')
  await git('commit', '-qm', tag)
  await git('tag', tag)
}

test('the site of each release is built of its tag, knows of the others, and lies in a folder of its name', {
  timeout: 240_000,
}, async () => {
  mkdirSync(root)
  await git('init', '-q')
  writeFileSync(
    join(root, 'package.json'),
    JSON.stringify({ name: 'released', private: true, scripts: { 'site:build': 'node build.cjs' } }),
  )
  writeFileSync(join(root, 'pnpm-lock.yaml'), "lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n")
  writeFileSync(
    join(root, 'build.cjs'),
    `const { mkdirSync, readFileSync, writeFileSync } = require('node:fs')
const [, , ...flags] = process.argv
const out = flags[flags.indexOf('--out') + 1]
mkdirSync(out, { recursive: true })
writeFileSync(out + '/index.html', [readFileSync('release.txt', 'utf8'), ...flags.slice(2)].join(' '))
`,
  )
  for (const tag of ['v1.0.0', 'v1.0.1', 'v1.1.0', 'v1.2.0-rc.1']) await release(tag)

  const out = join(scratch, 'site')
  mkdirSync(out)
  writeFileSync(join(out, 'old.html'), '')
  await buildReleases(out, { address: 'http://127.0.0.1:1/docs/' }, root)
  expect(readdirSync(out).sort()).toEqual(['1.0.1', '1.1.0', '404.html', 'index.html'])
  expect(readFileSync(join(out, '1.1.0/index.html'), 'utf8')).toBe('v1.1.0 --versions 1.1.0,1.0.1 --address http://127.0.0.1:1/docs/1.1.0/')
  expect(readFileSync(join(out, '1.0.1/index.html'), 'utf8')).toBe('v1.0.1 --versions 1.1.0,1.0.1')
  expect(readFileSync(join(out, 'index.html'), 'utf8')).toContain('url=1.1.0/index.html')
  expect(readFileSync(join(out, '404.html'), 'utf8')).toContain("'1.1.0/index.html'")
  // The folder of the build was removed.
  expect((await git('worktree', 'list')).trim().split('\n')).toHaveLength(1)
})
