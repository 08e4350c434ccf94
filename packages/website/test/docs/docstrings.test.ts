import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { sourceEntries } from '@weir/tooling/workspace'
import { isPropertySignatureDeclaration } from 'typescript/unstable/ast'
import {
  API,
  type Checker,
  type Symbol as Known,
  type Project,
  SignatureKind,
  SymbolFlags,
  type Type,
  TypeFlags,
} from 'typescript/unstable/sync'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PACKAGE, ROOT } from './pages.ts'

/** Options that readers copy, so their docstrings need an example. Only in core, because for example a `key` of TLS needs none. */
const EXEMPLIFIED: readonly string[] = ['key', 'match', 'delay', 'plans', 'cost', 'allow', 'headers', 'algorithm', 'failMode']

/** Types of options by their names. Types of their members, and of unnamed parameters, contain options too. */
const OPTIONS = /(?:Options|Input|Target)$/

const folder = join(PACKAGE, 'node_modules', '.weir-docstrings')
const project = join(folder, 'tsconfig.json')
const badOptions = join(folder, 'bad-options.ts')
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

const api = new API({ cwd: ROOT })
afterAll(() => {
  api.close()
  rmSync(folder, { recursive: true, force: true })
})

/** An option in its declaration. */
interface Option {
  /** `file:line Type.option`. */
  readonly place: string
  readonly lacks: readonly string[]
}

/** Finds the options that users can set, in all exports of an entry. */
class Search {
  /** By the place of the declaration, because types share members. */
  readonly options = new Map<string, Option>()
  readonly #checker: Checker
  readonly #project: Project
  readonly #seen = new Set<number>()

  constructor(project: Project) {
    this.#project = project
    this.#checker = project.checker
  }

  /** Searches exported types of options, and the parameters of exported functions. */
  entry(file: string): void {
    const source = this.#project.program.getSourceFile(file)
    const module = source && this.#checker.getSymbolAtLocation(source)
    if (module === undefined) throw new Error(`${file} is not part of the program`)
    for (const exported of this.#checker.getExportsOfModule(module)) {
      const symbol = (exported.flags & SymbolFlags.Alias) !== 0 ? this.#checker.getAliasedSymbol(exported) : exported
      if ((symbol.flags & SymbolFlags.Type) !== 0 && OPTIONS.test(symbol.name))
        this.#walk(this.#checker.getDeclaredTypeOfSymbol(symbol), symbol.name)
      if ((symbol.flags & SymbolFlags.Function) === 0) continue
      const type = this.#checker.getTypeOfSymbol(symbol)
      for (const signature of type === undefined ? [] : this.#checker.getSignaturesOfType(type, SignatureKind.Call)) {
        for (const parameter of signature.getParameters()) this.#parameter(this.#checker.getTypeOfSymbol(parameter), symbol.name)
      }
    }
  }

  /** Ignores other named types, because they are values that functions return, such as decisions. */
  #parameter(type: Type | undefined, owner: string): void {
    const given = type && this.#checker.getNonNullableType(type)
    const symbol = given?.getAliasSymbol() ?? given?.getSymbol()
    if (given === undefined || symbol === undefined) return
    const isUnnamed = symbol.name === '__type' && this.#checker.getPropertiesOfType(given).some(isOptional)
    if (isUnnamed || OPTIONS.test(symbol.name)) this.#walk(given, owner)
  }

  #walk(type: Type | undefined, owner: string): void {
    if (type === undefined || this.#seen.has(type.id)) return
    this.#seen.add(type.id)
    if (type.isUnionType() || (type.isIntersectionType() && !this.#isOptions(type))) {
      for (const part of type.getTypes()) this.#walk(part, owner)
      return
    }
    if (this.#checker.isArrayLikeType(type)) {
      for (const element of this.#checker.getTypeArguments(type as never)) this.#walk(element, owner)
      return
    }
    for (const { valueType } of this.#checker.getIndexInfosOfType(type)) this.#walk(valueType, owner)
    if (!this.#isOptions(type)) return
    const name = type.getAliasSymbol()?.name ?? type.getSymbol()?.name ?? owner
    for (const member of this.#checker.getPropertiesOfType(type)) this.#member(member, name.startsWith('__') ? owner : name)
  }

  /** Whether users write the type as an object literal. Values with methods, such as stores and clocks, come from functions. */
  #isOptions(type: Type): boolean {
    if ((type.flags & (TypeFlags.Object | TypeFlags.Intersection)) === 0 || this.#isCallable(type)) return false
    const name = type.getAliasSymbol()?.name ?? type.getSymbol()?.name ?? ''
    const members = this.#checker.getPropertiesOfType(type)
    if (!members.some(isOurs)) return false
    if (OPTIONS.test(name)) return true
    return !members.some((member) => (member.flags & SymbolFlags.Property) === 0 || this.#isCallable(this.#checker.getTypeOfSymbol(member)))
  }

  #isCallable(type: Type | undefined): boolean {
    const given = type && this.#checker.getNonNullableType(type)
    return given !== undefined && this.#checker.getSignaturesOfType(given, SignatureKind.Call).length > 0
  }

  #member(member: Known, owner: string): void {
    const node = member.valueDeclaration?.resolve(this.#project)
    if (node === undefined || !isPropertySignatureDeclaration(node) || !isOurs(member)) return
    const type = this.#checker.getTypeOfSymbol(member)
    const given = type && this.#checker.getNonNullableType(type)
    if (given === undefined || (given.flags & TypeFlags.Never) !== 0) return
    const source = node.getSourceFile()
    const file = relative(ROOT, source.fileName)
    const id = `${file}:${node.pos}`
    if (!this.options.has(id)) {
      const line = source.text.slice(0, node.getStart(source)).split('\n').length
      const text = this.#checker.getDocumentationCommentOfSymbol(member)
      const tags = this.#checker.getJsDocTagsOfSymbol(member).map(({ name, text: content = '' }) => ({ name, content: content.trim() }))
      const hasNo = (tag: string) => !tags.some(({ name, content }) => name === tag && content !== '')
      const isExemplified = file.startsWith('packages/core/') && EXEMPLIFIED.includes(member.name)
      // The page is in backquotes, because TypeScript reads an @ at the beginning as another tag.
      const pages = tags
        .filter(({ name }) => name === 'see')
        .map(({ content }) => /^`@weir\/core\/(docs\/.*)`$/.exec(content)?.[1] ?? content)
      const lacks = [
        ...lackingIn(text, this.#valuesOf(given)),
        ...(node.postfixToken !== undefined && hasNo('default') ? ['@default'] : []),
        ...(isExemplified && hasNo('example') ? ['@example'] : []),
        ...pages.filter((page) => page === '' || !existsSync(join(ROOT, page))).map((page) => `the page of @see ${page}`),
      ]
      this.options.set(id, { place: `${file}:${line} ${owner}.${member.name}`, lacks })
    }
    if (!this.#isCallable(given)) this.#walk(given, `${owner}.${member.name}`)
  }

  /** The values of a union, as users write them. */
  #valuesOf(type: Type): readonly string[] {
    const parts = type.isUnionType() ? type.getTypes() : [type]
    const found = parts.flatMap((part) => {
      if (part.isStringLiteralType()) return [`'${part.value}'`]
      if (this.#checker.isArrayLikeType(part))
        return this.#checker.getTypeArguments(part as never).flatMap((element) => (element === type ? [] : this.#valuesOf(element)))
      return part.isBooleanLiteralType() ? [String(part.value)] : []
    })
    // A boolean needs no list.
    const isBoolean = found.includes('true') && found.includes('false')
    const values = [...new Set(found)].filter((value) => !isBoolean || value.startsWith("'"))
    return values.length > 1 ? values : []
  }
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

function isOptional(symbol: Known): boolean {
  return (symbol.flags & SymbolFlags.Optional) !== 0
}

function isOurs(symbol: Known): boolean {
  return symbol.declarations.some(
    ({ path }) => (/\/packages\/\w+\/src\//.test(path) && !path.includes('/node_modules/')) || path === badOptions,
  )
}

function listed(options: Iterable<Option>): string[] {
  return [...options].filter(({ lacks }) => lacks.length > 0).map(({ place, lacks }) => `${place}: lacks ${lacks.join('; ')}`)
}

let loaded: Project
const entries = sourceEntries()

beforeAll(() => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(badOptions, BAD_OPTIONS)
  writeFileSync(project, JSON.stringify({ extends: join(ROOT, 'tsconfig.base.json'), files: [...entries.values(), badOptions] }))
  const opened = api.updateSnapshot({ openProjects: [project] }).getProject(project)
  if (opened === undefined) throw new Error('The project could not be opened')
  loaded = opened
})

test('the docstring of each public option has a purpose, a default, and a list of its values', () => {
  const search = new Search(loaded)
  for (const file of entries.values()) search.entry(file)
  expect(search.options.size).toBeGreaterThan(200)
  expect(listed(search.options.values())).toEqual([])
})

test('a docstring that lacks something is found', () => {
  const search = new Search(loaded)
  search.entry(badOptions)
  expect(search.options.size).toBe(8)
  expect(listed(search.options.values()).map((line) => line.replace(/^\S+:\d+ /, ''))).toEqual([
    'BadOptions.undocumented: lacks a first sentence about its purpose',
    'BadOptions.inverted: lacks a first sentence about its purpose',
    'BadOptions.size: lacks a tag @default in place of the sentence; @default',
    "BadOptions.modes: lacks in its list: 'off'",
    'BadOptions.nested: lacks the page of @see docs/no-page.md',
    'BadOptions.nested.deep: lacks a first sentence about its purpose; @default',
  ])
})
