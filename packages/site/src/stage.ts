import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { Markdown } from './markdown.ts'
import { images, type Page, pages, ROOT } from './pages.ts'

/** Where VitePress finds the pages: made anew from the repository's files, with links as the site has them. */
export const STAGE = join(ROOT, 'packages/site/.stage')

/** A page as it stands on the site. */
export interface Staged {
  readonly path: string
  readonly title: string
  readonly summary: string
  readonly text: string
}

export function stage(): Staged[] {
  const all = pages()
  const places = new Map<string, string>([
    ...all.map(({ source, path }): [string, string] => [source, path]),
    // The page itself: nobody needs to know how it is made.
    ['packages/playground/README.md', 'playground/index.html'],
    ...images().map((file): [string, string] => [file, file.slice('docs/'.length)]),
  ])
  const staged = all.map((page) => stagedOf(page, places))
  staged.push(...errorPages())
  staged.push(homeOf(readFileSync(join(ROOT, 'packages/site/home.md'), 'utf8')))
  rmSync(STAGE, { recursive: true, force: true })
  for (const { path, text } of staged) write(path, text)
  for (const file of images()) {
    const to = join(STAGE, file.slice('docs/'.length))
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(ROOT, file), to)
  }
  return staged
}

function stagedOf({ source, path }: Page, places: ReadonlyMap<string, string>): Staged {
  const markdown = new Markdown(readFileSync(join(ROOT, source), 'utf8')).plainCode().relink((url) => {
    const [file = '', anchor] = url.split('#')
    const target = posix.join(posix.dirname(source), file)
    const place = places.get(target) ?? places.get(posix.join(target, 'README.md'))
    if (place === undefined) return undefined
    const relative = posix.relative(posix.dirname(path), place)
    return `${relative.startsWith('.') ? relative : `./${relative}`}${anchor === undefined ? '' : `#${anchor}`}`
  })
  return { path, title: markdown.title, summary: markdown.summary, text: markdown.toString() }
}

/** A page for each code, so that whoever looks for one finds just that. */
function errorPages(): Staged[] {
  const source = 'docs/reference/errors.md'
  const text = readFileSync(join(ROOT, source), 'utf8')
  return new Markdown(text)
    .sections(3)
    .filter(({ title }) => /^WEIR_\w+$/.test(title))
    .map(({ title, text }) => {
      const path = `errors/${title.toLowerCase()}.md`
      const markdown = new Markdown(`# ${title}\n\n${text}\n\n[All errors and warnings](errors.md#${title.toLowerCase()})\n`)
      const { summary } = markdown
      markdown.plainCode().relink((url) => `../reference/${url}`)
      // Other codes have sections in the one page, and pages here.
      return { path, title, summary, text: markdown.toString().replace(/\]\(#(weir_\w+)\)/g, '](./$1.md)') }
    })
}

function homeOf(text: string): Staged {
  return { path: 'index.md', title: 'Weir', summary: 'A distributed rate limiter for Node.js.', text }
}

function write(path: string, text: string): void {
  const to = join(STAGE, path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, text)
}
