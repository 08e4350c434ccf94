import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Type } from 'typescript/unstable/sync'
import { afterAll, expect, test } from 'vitest'
import { type PublicOption, publicOptions } from '../../src/docs/reference/public-options.ts'
import { pagesOf, Sources } from '../../src/docs/reference/sources.ts'
import { ROOT } from './pages.ts'

/** Options that readers copy, so their docstrings need an example. Only in core, because for example a `key` of TLS needs none. */
const EXEMPLIFIED: readonly string[] = ['key', 'match', 'delay', 'plans', 'cost', 'allow', 'headers', 'algorithm', 'failMode']

const BAD_OPTIONS = `
type Mode = 'on' | 'off'
export interface BadOptions {
  readonly undocumented: number
  /** What it is. */
  readonly inverted: number
  /** Sets the size. Default 6. */
  readonly size?: number
  /**
   * Sets the modes:
   * - \`'on'\`: it counts.
   *
   * @default ['on']
   */
  readonly modes?: readonly Mode[]
  /**
   * Contains another option.
   *
   * @see \`@weir/core/docs/no-page.md\`
   */
  readonly nested: { readonly deep?: boolean }
}
export interface GoodOptions {
  /**
   * Sets the modes:
   * - \`'on'\`: it counts.
   * - \`'off'\`: it doesn't count.
   * - \`false\`: it is absent.
   *
   * @default \`'on'\`
   */
  readonly modes?: Mode | false | readonly Mode[]
  /** Calls a function. */
  readonly call: () => Mode
}
`

const sources = new Sources('docstrings', BAD_OPTIONS)
afterAll(() => sources.close())

/** The parts that the docstrings of these options lack, by place. */
function lacking(options: readonly PublicOption[]): string[] {
  return options.flatMap(({ name, file, place, node, type, docstring }) => {
    const hasNo = (tag: string) => !docstring.tags.some((given) => given.name === tag && given.content !== '')
    const isExemplified = file.startsWith('packages/core/') && EXEMPLIFIED.includes(name)
    const lacks = [
      ...lackingIn(docstring.text, valuesOf(type)),
      ...(node.postfixToken !== undefined && hasNo('default') ? ['@default'] : []),
      ...(isExemplified && hasNo('example') ? ['@example'] : []),
      ...pagesOf(docstring)
        .filter((page) => page === '' || !existsSync(join(ROOT, page.replace(/#.*/, ''))))
        .map((page) => `the page of @see ${page}`),
    ]
    return lacks.length > 0 ? [`${place}: lacks ${lacks.join('; ')}`] : []
  })
}

/** The values of a union, as users write them. */
function valuesOf(type: Type): readonly string[] {
  const parts = type.isUnionType() ? type.getTypes() : [type]
  const found = parts.flatMap((part) => {
    if (part.isStringLiteralType()) return [`'${part.value}'`]
    if (sources.checker.isArrayLikeType(part))
      return sources.checker.getTypeArguments(part as never).flatMap((element) => (element === type ? [] : valuesOf(element)))
    return part.isBooleanLiteralType() ? [String(part.value)] : []
  })
  // A boolean needs no list.
  const isBoolean = found.includes('true') && found.includes('false')
  const values = [...new Set(found)].filter((value) => !isBoolean || value.startsWith("'"))
  return values.length > 1 ? values : []
}

/** The parts that a docstring lacks, for an option with these values. */
function lackingIn(text: string, values: readonly string[]): string[] {
  const [first = ''] = /^[\s\S]*?[.:](?=\s|$)/.exec(text) ?? []
  const list = text.split('\n').filter((line) => line.startsWith('- '))
  const lacking = values.filter((value) => !list.some((line) => line.includes(`\`${value}\``)))
  return [
    ...(/^(?!(?:Default|What|Who|Where|Whether|As) )\S+ \S+/.test(first) ? [] : ['a first sentence about its purpose']),
    ...(/\bdefault\b\)?:? [`'\d]|\(default\)|\bDefault:/i.test(text) ? ['a tag @default in place of the sentence'] : []),
    ...(lacking.length > 0 ? [`in its list: ${lacking.join(', ')}`] : []),
  ]
}

test('the docstring of each public option has a purpose, a default, and a list of its values', () => {
  const options = publicOptions(sources, sources.entries)
  expect(options.length).toBeGreaterThan(200)
  expect(lacking(options)).toEqual([])
})

test('a docstring that lacks something is found', () => {
  const options = publicOptions(sources, [sources.more])
  expect(options).toHaveLength(8)
  expect(lacking(options).map((line) => line.replace(/^\S+:\d+ /, ''))).toEqual([
    'BadOptions.undocumented: lacks a first sentence about its purpose',
    'BadOptions.inverted: lacks a first sentence about its purpose',
    'BadOptions.size: lacks a tag @default in place of the sentence; @default',
    "BadOptions.modes: lacks in its list: 'off'",
    'BadOptions.nested: lacks the page of @see docs/no-page.md',
    'BadOptions.nested.deep: lacks a first sentence about its purpose; @default',
  ])
})
