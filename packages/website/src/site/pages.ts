import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))

/** A file of the repository that is a page of the site. */
export interface Page {
  /** Path from the root of the repository. */
  readonly source: string
  /** Path on the site, without a leading slash. */
  readonly path: string
}

const SINGLE: Readonly<Record<string, string>> = {
  'README.md': 'start.md',
  '.github/CONTRIBUTING.md': 'project/contributing.md',
  'docs/architecture.md': 'project/architecture.md',
  'examples/README.md': 'project/examples.md',
  '.github/SECURITY.md': 'project/security.md',
}

/** All pages: the documentation, and the READMEs of packages and examples. */
export function pages(): Page[] {
  const docs = filesOf('docs')
    .filter((file) => file.endsWith('.md') && SINGLE[file] === undefined)
    .map((source) => ({ source, path: pathOf(source) }))
  const own = ['packages', 'examples'].flatMap((room) =>
    readdirSync(join(ROOT, room))
      .filter((name) => room === 'examples' || isPublic(name))
      .filter((name) => exists(join(room, name, 'README.md')))
      .map((name) => ({ source: `${room}/${name}/README.md`, path: `${room}/${name}.md` })),
  )
  return [...Object.entries(SINGLE).map(([source, path]) => ({ source, path })), ...docs, ...own]
}

/** Images that the pages show. */
export function images(): string[] {
  return filesOf('docs').filter((file) => /\.(svg|webp)$/.test(file))
}

function pathOf(source: string): string {
  const path = source.slice('docs/'.length)
  return path === 'README.md' ? 'overview.md' : path.replace(/(^|\/)README\.md$/, '$1index.md')
}

function isPublic(name: string): boolean {
  const manifest = join('packages', name, 'package.json')
  return exists(manifest) && (JSON.parse(readFileSync(join(ROOT, manifest), 'utf8')) as { private?: boolean }).private !== true
}

function filesOf(directory: string): string[] {
  return readdirSync(join(ROOT, directory), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort()
}

function exists(file: string): boolean {
  return existsSync(join(ROOT, file))
}
