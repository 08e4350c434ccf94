import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorPages } from '@weir/tooling/error-pages'
import { describe, expect, test } from 'vitest'
import { show, WeirError, type WeirErrorCode } from '../../src/report/errors.ts'

const packages = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(join(packages, '../docs/reference/errors.md'), 'utf8')
const pages = errorPages(page).map(({ path }) => `@weir/core/docs/${path}`)
const listOfCodes = 'report/errors.ts'
const listed = [...page.matchAll(/^### (WEIR_\w+)$/gm)].map(([, code]) => code as string)

function isPublished(manifest: string): boolean {
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).private !== true
}

function sourcesOfPublished(): { name: string; file: string; text: string }[] {
  return readdirSync(packages).flatMap((name) => {
    // Other packages name environment variables in the form of codes.
    if (!isPublished(join(packages, name, 'package.json'))) return []
    const files = readdirSync(join(packages, name, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
    return files.map((file) => ({ name, file, text: readFileSync(join(packages, name, 'src', file), 'utf8') }))
  })
}

/** The codes that the sources of all published packages name, apart from the list of their type. */
function codesInSources(): Set<string> {
  const codes = new Set<string>()
  for (const { name, file, text } of sourcesOfPublished()) {
    if (name === 'core' && file === listOfCodes) continue
    // A command names environment variables in this way.
    for (const [, code] of text.matchAll(/(?<!\.env\()'(WEIR_[A-Z_]+)'/g)) codes.add(code as string)
  }
  return codes
}

function codesOfType(): string[] {
  const source = readFileSync(join(packages, 'core/src', listOfCodes), 'utf8')
  const [, type = ''] = /^export type WeirErrorCode =\n((?: {2}\| .*\n)+)/m.exec(source) ?? []
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

  test.each(codesOfType())('has a page of its own, which errors name: %s', (code) => {
    const { page: named } = new WeirError(code as WeirErrorCode, 'x')
    expect(named).toBe(`@weir/core/docs/errors/${code.toLowerCase()}.md`)
    expect(pages).toContain(named)
  })

  test('and all others that sources of published packages name come with the package of the core', () => {
    const named = sourcesOfPublished().flatMap(({ file, text }) =>
      [...text.matchAll(/['"` ]((?:@weir\/core\/)?docs\/[\w/-]+\.md)/g)].map(([, path = '']) => ({ file, path })),
    )
    expect(named.length).toBeGreaterThan(2)
    for (const { file, path } of named) {
      expect(path, file).toMatch(/^@weir\/core\/docs\//)
      expect(existsSync(join(packages, '..', path.slice('@weir/core/'.length))), `${file}: ${path}`).toBe(true)
    }
  })

  test('its example prints what it says', () => {
    const error = new WeirError(
      'WEIR_INVALID_OPTION',
      'Option "limit" is 0. Use a number of at least 1, or a function of the request. To reject every request, use limit: () => 0 with a "fallbackLimit".',
    )
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
