import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { asVersion, documentOf } from '../src/rules/document.ts'
import { file, line, rules, weir } from './weir.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-cli-files-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const pipe = join(folder, 'pipe')
execFileSync('mkfifo', [pipe])
const large = file('large.yaml', '')
truncateSync(large, 8_000_001)

const good = rules('good.json', {})
const log = file('access.log', line(0, '192.0.2.1'))
const KEY = ['block', 'x', '--for', '1m', '--store', 'redis://127.0.0.1:1']

/** All options and arguments that take a file of rules. */
const READERS: readonly (readonly [string, (path: string) => readonly string[]])[] = [
  ['plan --rules', (path) => ['plan', log, '--rules', path]],
  ['plan --against', (path) => ['plan', log, '--rules', good, '--against', path]],
  ['check', (path) => ['check', path]],
  ['check --against', (path) => ['check', good, '--against', path]],
  ['diff', (path) => ['diff', path, '--source', good]],
  ['diff --source', (path) => ['diff', good, '--source', path]],
  ['push', (path) => ['push', path, '--source', good]],
  ['push --source', (path) => ['push', good, '--source', path]],
  ['log --source', (path) => ['log', '--source', path]],
  ['block --rules', (path) => [...KEY, '--rules', path]],
]

describe.each(READERS)('%s', (_, args) => {
  it.each([
    ['a pipe', pipe, 'it is not a regular file'],
    ['a device', '/dev/zero', 'it is not a regular file'],
    ['a folder', folder, 'it is not a regular file'],
    ['a file of more than 8,000,000 bytes', large, 'it has more than 8000000 bytes, the most that rules may have'],
  ])('ends with 2 for %s', async (_kind, path, why) => {
    const { code, err } = await weir(args(path))
    expect([code, err]).toEqual([2, expect.stringContaining(why)])
  })
})

describe('rules', () => {
  const text = '{"version":1,"policies":[{"key":"ip","limit":5,"interval":"1m"}]}'
  it.each([
    ['JSON', text],
    ['YAML', 'version: 1\npolicies:\n  - key: ip\n    limit: 5\n    interval: 1m\n'],
  ])('in %s may begin with a byte order mark, and become another version', async (_, plain) => {
    expect((await weir(['check', file('bom.rules', `\ufeff${plain}`)])).code).toBe(0)
    expect(documentOf(asVersion(`\ufeff${plain}`, 2, { why: 'test' })).rules.version).toBe(2)
  })

  it.each([
    ['with a byte order mark', Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['with a byte order mark, the other byte first', Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
    ['without one', Buffer.from(text, 'utf16le')],
    ['without one, the other byte first', Buffer.from(text, 'utf16le').swap16()],
  ])('in UTF-16 %s are rejected, with what to do', async (_, bytes) => {
    const { code, err } = await weir(['check', file('utf16.rules', bytes)])
    expect([code, err]).toEqual([1, expect.stringContaining('it looks like UTF-16. Save it as UTF-8')])
  })
})
