import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { floorsOf, roomViolations } from '../src/rooms.js'
import { ROOT, workspacePackages } from '../src/workspace.js'

/** Violations in a package with these rooms and files. */
function found(rooms: Record<string, string[]>, files: Record<string, string>): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'weir-rooms-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  writeFileSync(join(directory, 'rooms.json'), JSON.stringify(rooms))
  for (const [name, code] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, 'src', name)), { recursive: true })
    writeFileSync(join(directory, 'src', name), code)
  }
  return roomViolations(directory).map(({ message }) => message)
}

const house = {
  'top/a.ts': "import { b } from '../ground/b.ts'",
  'ground/b.ts': 'export const b = 1',
  'index.ts': "export * from './top/a.ts'",
}

describe('the classes of a package', () => {
  const base = 'export abstract class Base extends Error {}'
  const heir = "import { Base } from './base.ts'\nexport class Heir<T> extends Base {}"

  it('may extend one other', () => {
    expect(found({ a: [] }, { 'a/base.ts': base, 'a/heir.ts': heir })).toEqual([])
  })

  it('may not extend one that extends another', () => {
    expect(found({ a: [] }, { 'a/base.ts': base, 'a/heir.ts': heir, 'a/third.ts': 'class Third extends Heir {}' })).toEqual([
      'Class "Third" extends "Heir", which extends "Base": inheritance is one deep at most.',
    ])
  })
})

describe('the rooms of a package', () => {
  it('may be used as the list says', () => {
    expect(found({ ground: [], top: ['ground'] }, house)).toEqual([])
  })

  it.each([
    ['an arrow that is not in the list', "import { a } from '../top/a.ts'", 'Room "ground" must not import from "top".'],
    ['an arrow of types', "import type { A } from '../top/a.ts'", 'Room "ground" must not import from "top".'],
    ['an export from another room', "export * from '../top/a.ts'", 'Room "ground" must not import from "top".'],
    ['a dynamic import', "const a = await import('../top/a.ts')", 'Room "ground" must not import from "top".'],
    ['the way over the top', "import { a } from '../index.ts'", 'Room "ground" must not import from the top.'],
  ])('must not have %s', (_name, code, message) => {
    expect(found({ ground: [], top: ['ground'] }, { ...house, 'ground/c.ts': code })).toEqual([message])
  })

  it.each([
    ["if (policy.coordination === 'central') ask()", 1],
    ["if ('local' in one && coordination !== 'local') ask()", 1],
    ["case 'background': ask()", 1],
    ["if (typeof coordination !== 'string') fail()", 0],
    ["const one = { coordination: 'leased' }", 0],
  ])('above decide compare no coordinations: %s', (code, count) => {
    const rooms = { decide: [], top: ['decide'] }
    const files = { 'decide/a.ts': "export const isLocal = coordination === 'local'", 'top/a.ts': `import '../decide/a.ts'\n${code}` }
    expect(found(rooms, files)).toHaveLength(count)
  })

  it('may have rooms of their own, with a list of their own', () => {
    const files = { 'top/rooms.json': '{ "upper": [], "lower": [] }', 'top/lower/a.ts': '', 'top/upper/b.ts': "import '../lower/a.ts'" }
    expect(found({ top: [] }, files)).toEqual(['Room "upper" must not import from "lower".'])
  })

  it('are all in the list', () => {
    expect(found({ ground: [], top: ['ground'] }, { ...house, 'cellar/c.ts': '' })).toEqual(['Room "cellar" is not in rooms.json.'])
  })

  it('have no arrow in the list that nobody uses', () => {
    expect(found({ ground: [], top: ['ground'], cellar: ['ground'] }, house)).toEqual(['No file of "cellar" imports from "ground".'])
  })

  it('have no circles', () => {
    const messages = found({ ground: ['top'], top: ['ground'] }, { ...house, 'ground/c.ts': "import { a } from '../top/a.ts'" })
    expect(messages).toEqual(['Arrows from room "ground" lead back to it.', 'Arrows from room "top" lead back to it.'])
  })
})

it.each(workspacePackages().map(({ directory }) => directory))('%s keeps to its rooms', (directory) => {
  expect(roomViolations(directory)).toEqual([])
})

it('core has at most 18 rooms on 10 floors', () => {
  const rooms = JSON.parse(readFileSync(join(ROOT, 'packages/core/rooms.json'), 'utf8'))
  expect(Object.keys(rooms).length).toBeLessThanOrEqual(18)
  expect(floorsOf(rooms)).toBeLessThanOrEqual(10)
})
