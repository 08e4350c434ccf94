import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { show, WeirError } from '../../src/report/errors.ts'

const packages = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(join(packages, '../docs/reference/errors.md'), 'utf8')
const listed = [...page.matchAll(/^### (WEIR_\w+)$/gm)].map(([, code]) => code as string)

function isPublished(manifest: string): boolean {
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).private !== true
}

/** The codes that the sources of all published packages name, apart from the list of their type. */
function codesInSources(): Set<string> {
  const codes = new Set<string>()
  for (const name of readdirSync(packages)) {
    // Others name variables of the environment in the same way.
    if (!isPublished(join(packages, name, 'package.json'))) continue
    const files = readdirSync(join(packages, name, 'src'), { recursive: true, encoding: 'utf8' })
    for (const file of files) {
      if (!file.endsWith('.ts') || (name === 'core' && file === 'errors.ts')) continue
      const text = readFileSync(join(packages, name, 'src', file), 'utf8')
      for (const [, code] of text.matchAll(/'(WEIR_[A-Z_]+)'/g)) codes.add(code as string)
    }
  }
  return codes
}

function codesOfType(): string[] {
  const source = readFileSync(join(packages, 'core/src/report/errors.ts'), 'utf8')
  const type = source.slice(source.indexOf('export type WeirErrorCode'), source.indexOf('/** Every error'))
  return [...type.matchAll(/'(WEIR_[A-Z_]+)'/g)].map(([, code]) => code as string)
}

describe('the page of errors', () => {
  test('explains each code once, and none that does not exist', () => {
    expect(codesOfType().length).toBeGreaterThan(5)
    expect([...listed].sort()).toEqual([...codesInSources()].sort())
  })

  test('no code is in the type that nothing throws or reports', () => {
    const used = codesInSources()
    expect(codesOfType().filter((code) => !used.has(code) || !listed.includes(code))).toEqual([])
  })

  test('says something about each', () => {
    for (const section of page.split(/^### WEIR_/m).slice(1))
      expect(section.split('\n').slice(1).join(' ').trim().length).toBeGreaterThan(60)
  })

  test('its example prints what it says', () => {
    const error = new WeirError('WEIR_INVALID_OPTION', 'Option "limit" is 0; it must be a number from 1 to 9007199254740991.')
    expect(page).toContain(`// ${error.message}`)
  })
})

describe('what was given, as messages show it', () => {
  test.each([
    ['a string', 'abc', '"abc"'],
    ['a number', 1.5, '1.5'],
    ['nothing', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a bigint', 5n, '5'],
    ['a symbol', Symbol('x'), 'Symbol(x)'],
    ['a function', function named() {}, 'function named'],
    ['an arrow function', (() => () => {})(), 'function (anonymous)'],
    ['an object', { a: 1 }, '{"a":1}'],
    ['a list', [1, 'b'], '[1,"b"]'],
    [
      'an object that would not be shown as JSON',
      {
        toJSON: () => {
          throw new Error('no')
        },
      },
      '{"toJSON":function toJSON}',
    ],
    ['an object without a prototype', Object.create(null), '{}'],
    ['one that shows itself as nothing', { toJSON: () => undefined }, '{"toJSON":function toJSON}'],
    ['control characters', '\u0000\n\u001b[31m\u2028', '"\\u0000\\n\\u001b[31m '],
    [
      'a cycle',
      (() => {
        const cycle: { self?: unknown } = {}
        cycle.self = cycle
        return cycle
      })(),
      '{"self":{"self":{"self":{...}}}}',
    ],
  ])('%s', (_, value, expected) => {
    const shown = show(value)
    expect(shown.startsWith(expected)).toBe(true)
    expect([...shown].filter((character) => character < ' ' || character === '\u2028')).toEqual([])
  })

  test('is cut short', () => {
    expect(show('x'.repeat(10_000))).toHaveLength(80)
  })
})
