import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { errorPages } from '@weir/tooling/error-pages'
import { Markdown } from './markdown.ts'
import { images, type Page, pages, ROOT } from './pages.ts'

/** Folder of the pages for VitePress. Each build writes it from the repository's files, with the links of the site. */
export const STAGE = join(ROOT, 'packages/website/.stage')

/** The first page, whose file has front matter of its own. */
export const HOME = 'index.md'

/** A page of the site. */
export interface Staged {
  readonly path: string
  /** Path of its file from the root of the repository. */
  readonly source: string
  readonly title: string
  readonly summary: string
  readonly text: string
}

export function stage(): Staged[] {
  const all = pages()
  const places = new Map<string, string>([
    ...all.map(({ source, path }): [string, string] => [source, path]),
    // Links to the README of the playground lead to the playground itself.
    ['packages/website/src/playground/README.md', 'playground/index.html'],
    ...images().map((file): [string, string] => [file, file.slice('docs/'.length)]),
  ])
  const staged = all.map((page) => stagedOf(page, places))
  staged.push(...codePages())
  staged.push(homeOf(places))
  rmSync(STAGE, { recursive: true, force: true })
  for (const page of staged) write(page.path, forVitePress(page))
  for (const file of images()) {
    const to = join(STAGE, file.slice('docs/'.length))
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(ROOT, file), to)
  }
  return staged
}

function stagedOf(page: Page, places: ReadonlyMap<string, string>): Staged {
  const markdown = relinked(page, places).plainCode()
  return { ...page, title: markdown.title, summary: markdown.summary, text: markdown.toString() }
}

/** The text of a page, with the links of the site. */
function relinked({ source, path }: Page, places: ReadonlyMap<string, string>): Markdown {
  return new Markdown(readFileSync(join(ROOT, source), 'utf8')).relink((url) => {
    const [file = '', anchor] = url.split('#')
    const target = posix.join(posix.dirname(source), file)
    const place = places.get(target) ?? places.get(posix.join(target, 'README.md'))
    if (place === undefined) return undefined
    const relative = posix.relative(posix.dirname(path), place)
    return `${relative.startsWith('.') ? relative : `./${relative}`}${anchor === undefined ? '' : `#${anchor}`}`
  })
}

/** The pages to which errors and warnings refer. */
function codePages(): Staged[] {
  const source = 'docs/reference/errors.md'
  return errorPages(readFileSync(join(ROOT, source), 'utf8')).map(({ path, text }) => {
    const markdown = new Markdown(text).plainCode()
    return { path, source, title: markdown.title, summary: markdown.summary, text: markdown.toString() }
  })
}

function homeOf(places: ReadonlyMap<string, string>): Staged {
  const page = { path: HOME, source: 'packages/website/src/site/home.md' }
  return { ...page, title: 'Weir', summary: 'A distributed rate limiter for Node.js.', text: relinked(page, places).toString() }
}

/** The page with its summary and its source as front matter, which the repository's files lack because GitHub would show it. */
function forVitePress({ path, source, summary, text }: Staged): string {
  if (path === HOME) return text
  return `---\ndescription: ${JSON.stringify(summary)}\nsource: ${JSON.stringify(source)}\n---\n\n${text}`
}

function write(path: string, text: string): void {
  const to = join(STAGE, path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, text)
}
