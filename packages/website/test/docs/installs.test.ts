import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { blocksOf, type Page, pages, ROOT } from './pages.ts'

/** Packages of this repository that are not published. */
const PRIVATE = /^packages\/(acceptance|bench|demo|proofs|tooling|website)\//

const catalog = readFileSync(join(ROOT, 'pnpm-workspace.yaml'), 'utf8')
const all = pages().filter(({ path }) => !PRIVATE.test(path))

/** The package of an import, e.g. `@weir/core` for `@weir/core/http`. Undefined for files and modules of Node.js. */
function packageOf(specifier: string): string | undefined {
  if (specifier.startsWith('.') || isBuiltin(specifier)) return undefined
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function importsOf(page: Page): ReadonlySet<string> {
  const code = blocksOf(page).filter(({ info }) => /^(ts|js|tsx|jsx)\b/.test(info))
  const specifiers = code.flatMap((block) => [...block.code.matchAll(/(?:\bfrom|^import|\brequire\(|\bimport\() ?'([^']+)'/gm)])
  return new Set(specifiers.flatMap(([, specifier = '']) => packageOf(specifier) ?? []))
}

/** The packages in the install lines of a page. */
function installedBy(page: Page): readonly string[] {
  const shell = blocksOf(page).filter(({ info }) => info === 'sh')
  const lines = shell.flatMap(({ code }) => [...code.matchAll(/^npm install (.*)$/gm)])
  return lines.flatMap(([, names = '']) => names.replace(/#.*/, '').split(/\s+/)).filter((name) => /^[@\w]/.test(name))
}

const readmes: ReadonlyMap<string, Page> = new Map(
  all.flatMap((page) => {
    const name = /^packages\/(\w+)\/README\.md$/.exec(page.path)?.[1]
    return name === undefined ? [] : [[`@weir/${name}`, page] as const]
  }),
)

/**
 * The packages that a reader has installed after the page and the READMEs of its packages. The README of core doesn't count, because
 * adapters export everything of core.
 */
function covered(page: Page, imports: ReadonlySet<string>): ReadonlySet<string> {
  const others = [...imports].filter((name) => name !== '@weir/core').flatMap((name) => readmes.get(name) ?? [])
  return new Set([page, ...others].flatMap(installedBy))
}

/** The package with the types of another package, if this repository uses one. */
function typesOf(name: string): string | undefined {
  const types = `@types/${name.replace(/^@(.*)\/(.*)$/, '$1__$2')}`
  return catalog.includes(`"${types}"`) ? types : undefined
}

describe('install lines name what the code of a page imports, for package managers that let in nothing else', () => {
  test.each(all.map((page) => [page.path, page] as const))('%s', (_path, page) => {
    const imports = importsOf(page)
    const installed = covered(page, imports)
    const missing = [...imports].filter((name) => !installed.has(name))
    expect(missing).toEqual([])
    const types = [...imports].flatMap((name) => typesOf(name) ?? [])
    expect(types.filter((name) => !installed.has(name))).toEqual([])
  })
})
